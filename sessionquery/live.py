"""Sessions that exist only in the memory of an embedding program (document 002, "live")."""

from __future__ import annotations

import itertools
import threading
import time as clock
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dsh_memory.sessionquery.disk.header import FormatStatus
from dsh_memory.sessionquery.errors import INVALID_SURFACE, SOURCE_CONFLICT, SessionQueryError
from dsh_memory.sessionquery.model.sessions import Event, SessionHeader, Surface
from dsh_memory.sessionquery.rules.messages import BodyError

if TYPE_CHECKING:
    from dsh_memory.sessionquery.rules.session import SessionValidator

_identities: Final = itertools.count(1)


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """A whole log.

    Attributes:
        header: In generation-4 form.
        inherited_event_count: How many events stem from the parent.
        events: Every event, closing rows included; ``events[n]["seq"] == n``.
        surfaces: One entry an event.
        surface_order: Numbers of the current events in list order (not always ascending).
        replaced_by: For each shadowed event the event that replaced it.
        row_count: How many of the events are on disk; the rest are closing rows.
        format_status: Whether the log is of an older generation.
    """

    header: SessionHeader
    inherited_event_count: int
    events: list[Event]
    surfaces: list[Surface]
    surface_order: list[int]
    replaced_by: dict[int, int]
    row_count: int
    format_status: FormatStatus


class LiveSession:
    """One in-memory session: a header that never changes and events that are only appended.

    Events are taken as they are and must not be changed afterwards.

    Args:
        header: Its header.
        events: Events so far, numbered from 0.

    Raises:
        SessionQueryError: ``INVALID_SURFACE`` if the events contradict each other.
    """

    def __init__(self, header: SessionHeader, events: Iterable[Event] = ()) -> None:
        self.header = header
        self.identity = next(_identities)
        self._lock = threading.Lock()
        self._rules = self._new_rules()
        self._events: list[Event] = []
        for event in events:
            self._accept(event)

    @property
    def revision(self) -> tuple[int, int]:
        """Changes with every append; never the same for two sessions of one process."""
        return self.identity, len(self._events)

    def append(
        self,
        kind: str,
        data: Any,
        *,
        time: int | None = None,
        surface_op: Any = None,
        source_event_seqs: Iterable[int] | None = None,
    ) -> Event:
        """Append an event.

        Args:
            kind: Event type.
            data: Payload, JSON.
            time: Milliseconds since the epoch; default now.
            surface_op: ``"append"`` or ``{"op": "replace", "startSeq", "endSeq"}`` for surface
                types.
            source_event_seqs: Numbers of cited earlier events.

        Returns:
            The event with its number.

        Raises:
            SessionQueryError: ``INVALID_SURFACE`` if it contradicts the earlier events.
        """
        with self._lock:
            event: Event = {
                "type": kind,
                "seq": len(self._events),
                "time": clock.time_ns() // 1_000_000 if time is None else time,
                "data": data,
            }
            if surface_op is not None:
                event["surfaceOp"] = surface_op
            if source_event_seqs is not None:
                event["sourceEventSeqs"] = list(source_event_seqs)
            self._accept(event)
            return event

    def snapshot(self) -> LoadedLog:
        """Return the session as it is now; a live turn is open, so nothing is closed."""
        from dsh_memory.sessionquery.model.sessions import SURFACE_NAMES

        with self._lock:
            rules, count = self._rules, len(self._events)
            return LoadedLog(
                header=self.header,
                inherited_event_count=rules.inherited_event_count,
                events=list(self._events),
                surfaces=[SURFACE_NAMES[code] for code in rules.classification(count)],
                surface_order=list(rules.surface),
                replaced_by=dict(rules.replaced_by),
                row_count=count,
                format_status="current",
            )

    def _new_rules(self) -> SessionValidator:
        # Most processes have no live session and need none of the rules.
        from dsh_memory.sessionquery.rules.session import SessionValidator

        return SessionValidator(session_id=self.header.id, is_seeded=self.header.is_seeded)

    def _accept(self, event: Event) -> None:
        try:
            if event["seq"] != len(self._events):
                raise BodyError(f"event number {event['seq']} is not {len(self._events)}")
            self._rules.accept(event)
            if self._rules.surface_fault is not None:
                raise BodyError(self._rules.surface_fault)
        except BodyError as error:
            # What was refused may have left traces in the rules.
            self._rules = self._new_rules()
            for accepted in self._events:
                self._rules.accept(accepted)
            raise SessionQueryError(
                f"The live session {self.header.id!r} cannot take the event: {error}.",
                code=INVALID_SURFACE,
            ) from error
        self._events.append(event)


class LiveSessions:
    """The live sessions that an embedding program offers to the engine; safe to use from threads.

    A live session wins over a persisted one of the same id.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, LiveSession] = {}
        self._lock = threading.Lock()

    def add(self, session: LiveSession) -> LiveSession:
        """Offer a session; another one of the same id is replaced."""
        with self._lock:
            self._sessions[session.header.id] = session
        return session

    def create(self, header: SessionHeader, events: Iterable[Event] = ()) -> LiveSession:
        """Make a session and offer it."""
        return self.add(LiveSession(header, events))

    def remove(self, session_id: str) -> None:
        """Withdraw a session; an unknown id is fine."""
        with self._lock:
            self._sessions.pop(session_id, None)

    def get(self, session_id: object) -> LiveSession | None:
        with self._lock:
            return self._sessions.get(session_id) if isinstance(session_id, str) else None

    def all(self) -> tuple[LiveSession, ...]:
        with self._lock:
            return tuple(self._sessions.values())


def check_same_header(live: SessionHeader, persisted: SessionHeader) -> None:
    """Make sure that a live and a persisted session of one id are the same session.

    Raises:
        SessionQueryError: ``SOURCE_CONFLICT``.
    """
    pairs = {
        "createdAt": (live.created_at, persisted.created_at),
        "cwd": (live.cwd, persisted.cwd),
        "parentSession": (live.parent_session, persisted.parent_session),
        "isSeeded": (live.is_seeded, persisted.is_seeded),
        "origin": (live.origin, persisted.origin),
        "delegationDepth": (live.delegation_depth or 0, persisted.delegation_depth or 0),
        "agentPreset": (live.agent_preset, persisted.agent_preset),
    }
    different = [name for name, (ours, theirs) in pairs.items() if ours != theirs]
    if different:
        raise SessionQueryError(
            f"The live and the persisted session {live.id!r} differ in {', '.join(different)}.",
            code=SOURCE_CONFLICT,
        )

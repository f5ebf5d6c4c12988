"""The exact operations of document 002 over live and persisted sessions, synchronously.

Every operation on one session prefers a live one and then does not look at the store at all, so
that a broken store leaves live sessions readable. Operations over the corpus need the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import (
    CORRUPT_SESSION,
    EVENT_NOT_FOUND,
    INVALID_SURFACE,
    INVALID_WINDOW,
    PERSISTENCE_FAILED,
    SessionQueryError,
)
from dsh_memory.sessionquery.filters import (
    event_predicate,
    parse_event_filters,
    parse_session_filters,
    session_predicate,
)
from dsh_memory.sessionquery.js.collation import id_sort_key
from dsh_memory.sessionquery.js.text import is_js_integer
from dsh_memory.sessionquery.live import LiveSessions, check_same_header
from dsh_memory.sessionquery.log.searchable_text import PayloadError, event_text
from dsh_memory.sessionquery.model.event_types import SURFACE_TYPES
from dsh_memory.sessionquery.model.reads import (
    EventDocument,
    EventRecord,
    EventTrace,
    EventWindow,
    Observation,
    SessionLog,
    SessionTrace,
    SurfaceView,
    TitleResult,
    TitleSnapshot,
)
from dsh_memory.sessionquery.model.search import UnreadableSession
from dsh_memory.sessionquery.model.sessions import Event, SessionRecord
from dsh_memory.sessionquery.reads.lineage import trace_lineage
from dsh_memory.sessionquery.reads.open_session import OpenSession, last_title, open_live
from dsh_memory.sessionquery.rules.resumable import check_observed
from dsh_memory.sessionquery.rules.session import BodyError
from dsh_memory.sessionquery.store.listing import Corpus, not_found
from dsh_memory.sessionquery.store.store import SessionStore


class SessionReader:
    """Exact reads, filters and traces.

    Args:
        store: The persisted sessions.
        live: The live ones.
        window_max: Largest ``before`` and ``after`` of `read_event`, in events.
        concurrency: How many logs a batch read opens at once.
    """

    def __init__(
        self, store: SessionStore, live: LiveSessions, *, window_max: int = 50, concurrency: int = 4
    ) -> None:
        self._store = store
        self._live = live
        self._window_max = window_max
        self._concurrency = concurrency

    # the corpus

    def records(self, *, signal: AbortSignal) -> dict[str, SessionRecord]:
        """Return live and persisted sessions by id, live headers winning.

        Raises:
            SessionQueryError: ``PERSISTENCE_FAILED``, ``SOURCE_CONFLICT``, ``ABORTED``.
        """
        return self.merge(self._store.corpus(signal=signal))

    def merge(self, corpus: Corpus) -> dict[str, SessionRecord]:
        """The same for a corpus that was read before."""
        written = self._store.being_written(corpus)
        out = {
            session_id: SessionRecord(
                session.header,
                live=session_id in written,
                persisted=True,
                format_status=session.format_status,
            )
            for session_id, session in corpus.sessions.items()
        }
        for live in self._live.all():
            persisted = corpus.sessions.get(live.header.id)
            if persisted is not None:
                check_same_header(live.header, persisted.header)
            out[live.header.id] = SessionRecord(
                live.header,
                live=True,
                persisted=persisted is not None,
                format_status=persisted.format_status if persisted else "current",
            )
        return out

    def list_sessions(self, *, signal: AbortSignal) -> tuple[SessionRecord, ...]:
        return _newest_first(self.records(signal=signal).values())

    def filter_sessions(self, filters: Any, *, signal: AbortSignal) -> tuple[SessionRecord, ...]:
        matches = session_predicate(parse_session_filters(filters))
        return tuple(record for record in self.list_sessions(signal=signal) if matches(record))

    def list_unreadable(self, *, signal: AbortSignal) -> tuple[UnreadableSession, ...]:
        """Name every log that is not offered or not readable; reads every log."""
        corpus = self._store.corpus(signal=signal, policy="skip")
        problems = [*corpus.unreadable, *self._store.unusable_headers(signal=signal)]
        for session in corpus.sessions.values():
            try:
                with self._store.stream(session, corpus, signal=signal) as stream:
                    for event in stream:
                        event_text(event)
                    stream.rules.check_surface()
            except (SessionQueryError, PayloadError) as error:
                signal.raise_if_aborted()
                code = error.code if isinstance(error, SessionQueryError) else PERSISTENCE_FAILED
                problems.append(
                    UnreadableSession(session.found.relative, code, str(error), session.header.id)
                )
        return tuple(problems)

    def trace_session(self, session_id: Any, *, signal: AbortSignal) -> SessionTrace:
        records = self.records(signal=signal)
        target = records.get(session_id) if isinstance(session_id, str) else None
        if target is None:
            raise not_found(session_id)
        return trace_lineage(target, records)

    # one session

    @contextmanager
    def open(self, session_id: Any, *, signal: AbortSignal) -> Iterator[OpenSession]:
        """Open a session's events, a live one's as they are now.

        Raises:
            SessionQueryError: ``SESSION_NOT_FOUND``, ``PERSISTENCE_FAILED``, ``CORRUPT_SESSION``,
                ``ABORTED``; also while the events are iterated.
        """
        signal.raise_if_aborted()
        live = self._live.get(session_id)
        if live is not None:
            yield open_live(live)
            return
        corpus, session = self._store.listed(session_id, signal=signal)
        with self._store.stream(session, corpus, signal=signal) as stream:
            yield OpenSession(stream.header, iter(stream), stream.rules, None)

    def list_events(self, session_id: Any, *, signal: AbortSignal) -> tuple[EventRecord, ...]:
        with self.open(session_id, signal=signal) as session:
            rows = [(event["seq"], event["type"], event["time"]) for event in session.events]
            surfaces = session.surfaces(len(rows))
            name = session.header.id
        return tuple(
            EventRecord(name, seq, kind, time, surface)
            for (seq, kind, time), surface in zip(rows, surfaces, strict=True)
        )

    def filter_events(
        self, session_id: Any, filters: Any, *, signal: AbortSignal
    ) -> tuple[EventDocument, ...]:
        matches = event_predicate(parse_event_filters(filters))
        with self.open(session_id, signal=signal) as session:
            count = 0
            found: list[tuple[int, str, int, str]] = []
            unreadable: PayloadError | None = None
            for event in session.events:
                count += 1
                try:
                    text = event_text(event)
                except PayloadError as error:
                    # A log that turns out to be corrupt, or its surface, counts before it.
                    unreadable = unreadable or error
                    continue
                if text:
                    found.append((event["seq"], event["type"], event["time"], text))
            surfaces = session.surfaces(count)
            if unreadable is not None:
                raise SessionQueryError(
                    f"Session {session.header.id!r} has no readable text: {unreadable}.",
                    code=PERSISTENCE_FAILED,
                ) from unreadable
            name = session.header.id
        documents = (
            EventDocument(name, seq, kind, time, surfaces[seq], text)
            for seq, kind, time, text in found
        )
        return tuple(document for document in documents if matches(document))

    def read_session(self, session_id: Any, *, signal: AbortSignal) -> SessionLog:
        with self.open(session_id, signal=signal) as session:
            events = tuple(session.events)
            session.check_surface()
            return SessionLog(session.header, session.inherited_event_count, events)

    def read_surface(self, session_id: Any, *, signal: AbortSignal) -> SurfaceView:
        with self.open(session_id, signal=signal) as session:
            last = -1
            kept: dict[int, Event] = {}
            for event in session.events:
                last = event["seq"]
                if event["type"] in SURFACE_TYPES:
                    kept[last] = event
            return SurfaceView(
                session.header,
                session.inherited_event_count,
                last,
                tuple(kept[seq] for seq in session.surface_order),
            )

    def read_event(
        self, session_id: Any, seq: Any, *, before: Any = 0, after: Any = 0, signal: AbortSignal
    ) -> EventWindow:
        before = self._window("before", before)
        after = self._window("after", after)
        with self.open(session_id, signal=signal) as session:
            target_seq = int(seq) if is_js_integer(seq) else -1
            first, last = target_seq - before, target_seq + after
            events = tuple(event for event in session.events if first <= event["seq"] <= last)
            target = next((event for event in events if event["seq"] == target_seq), None)
            if target is None:
                raise _no_event(session.header.id, seq)
            return EventWindow(
                session.header,
                session.inherited_event_count,
                target,
                events,
                events[0]["seq"],
                events[-1]["seq"],
            )

    def _window(self, name: str, value: Any) -> int:
        if not is_js_integer(value) or not 0 <= value <= self._window_max:
            raise SessionQueryError(
                f"{name!r} must be an integer from 0 to {self._window_max}, not {value!r}.",
                code=INVALID_WINDOW,
            )
        return int(value)

    def trace_event(self, session_id: Any, seq: Any, *, signal: AbortSignal) -> EventTrace:
        with self.open(session_id, signal=signal) as session:
            number = int(seq) if is_js_integer(seq) else -1
            target: tuple[int, str, int] | None = None
            sources: tuple[int, ...] = ()
            derived: list[int] = []
            count = 0
            for event in session.events:
                count += 1
                cited = event.get("sourceEventSeqs", ())
                if event["seq"] == number:
                    target = event["seq"], event["type"], event["time"]
                    sources = tuple(cited)
                if number in cited:
                    derived.append(event["seq"])
            if target is None:
                raise _no_event(session.header.id, seq)
            replaced_by = session.replaced_by
            chain: list[int] = []
            current = number
            while (following := replaced_by.get(current)) is not None:
                chain.append(following)
                current = following
            return EventTrace(
                session=session.header,
                target=EventRecord(session.header.id, *target, session.surfaces(count)[number]),
                replaced_by=chain[0] if chain else None,
                replacement_chain=tuple(chain),
                replaced_event_seqs=tuple(old for old, new in replaced_by.items() if new == number),
                source_event_seqs=sources,
                derived_event_seqs=tuple(derived),
            )

    def observe_session(self, session_id: Any, *, signal: AbortSignal) -> Observation:
        signal.raise_if_aborted()
        live = self._live.get(session_id)
        if live is not None:
            loaded = live.snapshot()
            return Observation(
                "live",
                loaded.header,
                loaded.inherited_event_count,
                tuple(loaded.events),
                len(loaded.events) - 1,
            )
        session = self._store.observed(session_id, signal=signal)
        with self._store.stream(session, None, signal=signal) as stream:
            try:
                events = tuple(stream)
                stream.rules.check_surface()
                for event in events:
                    check_observed(event)
            except SessionQueryError as error:
                if error.code != INVALID_SURFACE:
                    raise
                raise SessionQueryError(error.message, code=CORRUPT_SESSION) from error
            except BodyError as error:
                raise SessionQueryError(
                    f"The log of session {session_id!r} is corrupt: {error}.", code=CORRUPT_SESSION
                ) from error
            return Observation(
                "prepared",
                stream.header,
                stream.rules.inherited_event_count,
                events,
                len(events) - 1,
            )

    # titles

    def read_title_snapshot(self, session_id: Any, *, signal: AbortSignal) -> TitleSnapshot:
        with self.open(session_id, signal=signal) as session:
            return TitleSnapshot(session.header, last_title(session.events))

    def read_titles(
        self, session_ids: Iterable[Any], *, signal: AbortSignal
    ) -> tuple[TitleResult, ...]:
        """Read the titles of several sessions; the store is listed once.

        A session that fails gives its error in the result; only a broken store or a cancellation
        fails the whole batch.
        """
        wanted = _distinct(session_ids)
        corpus = None
        if any(self._live.get(session_id) is None for session_id in wanted):
            try:
                corpus = self._store.corpus(signal=signal)
            except SessionQueryError as error:
                signal.raise_if_aborted()
                return tuple(self._title_or_error(i, error, signal) for i in wanted)
        if len(wanted) <= 1:
            return tuple(self._title_or_error(i, corpus, signal) for i in wanted)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=self._concurrency) as pool:
            return tuple(pool.map(lambda i: self._title_or_error(i, corpus, signal), wanted))

    def _title_or_error(
        self, session_id: Any, corpus: Corpus | SessionQueryError | None, signal: AbortSignal
    ) -> TitleResult:
        signal.raise_if_aborted()
        try:
            live = self._live.get(session_id)
            if live is not None:
                opened = open_live(live)
                return TitleResult(
                    session_id, TitleSnapshot(opened.header, last_title(opened.events))
                )
            if isinstance(corpus, SessionQueryError):
                raise corpus
            known = corpus.sessions if corpus is not None else {}
            session = known.get(session_id) if isinstance(session_id, str) else None
            if session is None:
                raise not_found(session_id)
            with self._store.stream(session, corpus, signal=signal) as stream:
                title = last_title(iter(stream))
                return TitleResult(session_id, TitleSnapshot(stream.header, title))
        except SessionQueryError as error:
            signal.raise_if_aborted()
            return TitleResult(session_id, error=error)


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return values of any JSON type without repetitions, as a JavaScript set has them."""
    seen: dict[Any, Any] = {}
    for value in values:
        if isinstance(value, bool):
            key: Any = (bool, value)
        elif value is None or isinstance(value, (str, int, float)):
            key = value
        else:
            key = (object, id(value))
        seen.setdefault(key, value)
    return list(seen.values())


def _newest_first(records: Iterable[SessionRecord]) -> tuple[SessionRecord, ...]:
    return tuple(
        sorted(
            records,
            key=lambda record: (-record.header.created_at, id_sort_key(record.header.id)),
        )
    )


def _no_event(session_id: str, seq: Any) -> SessionQueryError:
    return SessionQueryError(
        f"Session {session_id!r} has no event {seq!r}.",
        code=EVENT_NOT_FOUND,
        hint=f"List its events with: dsh-memory events {session_id}",
    )

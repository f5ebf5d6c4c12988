"""One session while it is read, the same for live and persisted ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsh_memory.sessionquery.live import LiveSession, LoadedLog
from dsh_memory.sessionquery.model.reads import SessionTitle
from dsh_memory.sessionquery.model.sessions import SURFACE_NAMES, Event, SessionHeader, Surface
from dsh_memory.sessionquery.rules.session import SessionValidator


@dataclass(slots=True)
class OpenSession:
    """A session while its events pass by; the fold is complete when `events` has ended."""

    header: SessionHeader
    events: Iterator[Event]
    rules: SessionValidator | None
    loaded: LoadedLog | None

    @property
    def inherited_event_count(self) -> int:
        return self._source.inherited_event_count

    @property
    def surface_order(self) -> list[int]:
        self.check_surface()
        return self.loaded.surface_order if self.loaded is not None else self._rules.surface

    @property
    def replaced_by(self) -> dict[int, int]:
        self.check_surface()
        return self._source.replaced_by

    def surfaces(self, count: int) -> list[Surface]:
        """Return the classification of the events 0..count-1."""
        self.check_surface()
        if self.loaded is not None:
            return self.loaded.surfaces
        return [SURFACE_NAMES[code] for code in self._rules.classification(count)]

    def check_surface(self) -> None:
        """Make sure that the surface can be told; what tells it does so by itself.

        Raises:
            SessionQueryError: ``INVALID_SURFACE``.
        """
        if self.rules is not None:
            self.rules.check_surface()

    @property
    def _rules(self) -> SessionValidator:
        assert self.rules is not None
        return self.rules

    @property
    def _source(self) -> LoadedLog | SessionValidator:
        return self.loaded or self._rules


def open_live(live: LiveSession) -> OpenSession:
    """Open a live session as it is now."""
    loaded = live.snapshot()
    return OpenSession(loaded.header, iter(loaded.events), None, loaded)


def last_title(events: Iterator[Event]) -> SessionTitle | None:
    """Read all events and return the title that the last ``session/title`` gives."""
    last: Event | None = None
    for event in events:
        if event["type"] == "session/title":
            last = event
    if last is None:
        return None
    data = last["data"]
    return SessionTitle(
        title=data.get("title"),
        message_seqs=tuple(data["messageSeqs"]),
        source=data["source"],
        event_seq=last["seq"],
        updated_at=last["time"],
    )

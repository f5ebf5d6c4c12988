"""The sessions that one search covers: those of the store and, over them, the live ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsh_memory.sessionquery.disk.writer_locks import locked_logs
from dsh_memory.sessionquery.filters import ListFilter, SessionFilter, session_predicate
from dsh_memory.sessionquery.index.build.live_index import LiveIndex
from dsh_memory.sessionquery.index.lifecycle import IndexView, SearchableSession
from dsh_memory.sessionquery.index.query.hits import Source, digest_as_of, newest_time
from dsh_memory.sessionquery.live import check_same_header
from dsh_memory.sessionquery.model.sessions import SessionHeader, SessionRecord


@dataclass(frozen=True, slots=True)
class Entry:
    """A session of the corpus.

    Attributes:
        source: Where its documents are.
        header: Its header.
        live: Whether it is one of the embedding program's sessions.
        persisted: The session in the store, None if it is only live.
    """

    source: Source
    header: SessionHeader
    live: bool
    persisted: SearchableSession | None


class Snapshot:
    """The corpus in one state of store and live sessions; never changes.

    Args:
        entries: By session id.

    Attributes:
        persisted: The entries whose documents are in the store's index, by log number.
        in_memory: The live ones, by log number in their index.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = entries
        self.persisted: dict[int, Entry] = {}
        self.in_memory: dict[int, Entry] = {}
        for entry in entries.values():
            group = self.in_memory if entry.live else self.persisted
            group[entry.source.log.id] = entry
        self._newest: int | None = None
        self._digests: dict[int, bytes] = {}

    @property
    def newest(self) -> int:
        """The newest row time of all sessions, ms."""
        if self._newest is None:
            self._newest = newest_time(entry.source.log for entry in self.entries.values())
        return self._newest

    def digest(self, as_of: int) -> bytes:
        """Return the digest of what the sessions had at a time (ms)."""
        known = self._digests.get(as_of)
        if known is None:
            pairs = ((name, entry.source) for name, entry in self.entries.items())
            known = self._digests[as_of] = digest_as_of(pairs, as_of)
        return known

    def selected(self, filters: Sequence[SessionFilter], root: Path) -> Snapshot:
        """Return the part that satisfies every clause.

        Args:
            filters: Session clauses.
            root: The sessions directory, for the locks that the availability depends on.
        """
        if not filters:
            return self
        locked: frozenset[str] = frozenset()
        if any(isinstance(one, ListFilter) and one.kind == "availability" for one in filters):
            locked = being_written(self.entries.values(), root)
        matches = session_predicate(filters)
        return Snapshot(
            {
                session_id: entry
                for session_id, entry in self.entries.items()
                if matches(
                    SessionRecord(
                        header=entry.header,
                        live=entry.live or session_id in locked,
                        persisted=entry.persisted is not None,
                    )
                )
            }
        )


class Snapshots:
    """Makes snapshots, the same one as long as nothing changes. One thread at a time.

    Args:
        live: The index of the live sessions.
    """

    def __init__(self, live: LiveIndex) -> None:
        self._live = live
        self._sessions: object = None
        self._persisted = Snapshot({})

    def current(self, view: IndexView) -> Snapshot:
        """Return the corpus of a view, live sessions included.

        Raises:
            SessionQueryError: ``SOURCE_CONFLICT`` if a live and a persisted session of one id have
                different headers, ``PERSISTENCE_FAILED`` for a live session without usable text.
        """
        if self._sessions is not view.sessions:
            self._sessions = view.sessions
            self._persisted = Snapshot(
                {
                    session_id: Entry(
                        Source(view.connection, session.log), session.listed.header, False, session
                    )
                    for session_id, session in view.sessions.items()
                }
            )
        live = self._live.synchronize()
        if not live:
            return self._persisted
        entries = dict(self._persisted.entries)
        for session_id, log in live.items():
            assert isinstance(log.header, SessionHeader)
            persisted = view.sessions.get(session_id)
            if persisted is not None:
                check_same_header(log.header, persisted.listed.header)
            source = Source(self._live.connection, log)
            entries[session_id] = Entry(source, log.header, True, persisted)
        return Snapshot(entries)


def being_written(entries: Iterable[Entry], root: Path) -> frozenset[str]:
    """Return the ids of the persisted sessions that another process is writing to."""
    places = {
        (entry.persisted.listed.found.project, entry.persisted.listed.found.directory): entry
        for entry in entries
        if entry.persisted is not None and not entry.live
    }
    logs = (entry.persisted.listed.found for entry in places.values() if entry.persisted)
    return frozenset(places[place].header.id for place in locked_logs(root, logs))

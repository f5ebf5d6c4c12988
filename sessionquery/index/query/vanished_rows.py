"""Rows that closed an open turn when the first page of a search was made, and are gone since.

A log whose last turn is open is read with closing rows (`log.interrupted_turn`), which are
searchable. When the session goes on, other rows take their place. A later page of the same search
must still see them, or its hits would shift against those of the first page. They follow from the
log's rows up to that time, so they are made again when they are needed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import ABORTED, SessionQueryError
from dsh_memory.sessionquery.index.build.live_index import make_document
from dsh_memory.sessionquery.index.build.writer import IndexWriter, NewDocument, begin_writing
from dsh_memory.sessionquery.index.file.catalog import IndexedLog
from dsh_memory.sessionquery.index.file.database import IndexDatabase, open_memory
from dsh_memory.sessionquery.index.file.location import MEMORY, locate_index
from dsh_memory.sessionquery.index.query.hits import Source
from dsh_memory.sessionquery.log.interrupted_turn import closing_rows
from dsh_memory.sessionquery.log.reader import EventStream
from dsh_memory.sessionquery.log.searchable_text import TEXT_PARTS, event_text
from dsh_memory.sessionquery.log.tool_names import ToolNames
from dsh_memory.sessionquery.model.sessions import Event, SessionHeader, Surface
from dsh_memory.sessionquery.rules.session import SessionValidator

_Key = tuple[int, tuple[tuple[int, bytes], ...]]


class EarlierClosings:
    """An index in memory of such rows, for the cursor used last. One thread at a time.

    Args:
        root: The sessions directory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._key: _Key | None = None
        self._database: IndexDatabase | None = None
        self._sources: dict[str, Source] = {}

    def sources(
        self, logs: Mapping[str, IndexedLog], as_of: int, *, signal: AbortSignal
    ) -> Mapping[str, Source]:
        """Return where the closing rows of sessions that grew since `as_of` can be searched.

        Args:
            logs: The persisted sessions by id.
            as_of: ms since the epoch.
            signal: Polled while logs are read.

        Raises:
            SessionQueryError: ``ABORTED``.
        """
        grown = {
            session_id: log
            for session_id, log in logs.items()
            if log.newest is not None
            and log.oldest is not None
            and log.oldest <= as_of < log.newest
        }
        key = (as_of, tuple(sorted((log.id, log.content) for log in grown.values())))
        if key != self._key:
            self.close()
            self._fill(grown, as_of, signal)
            self._key = key
        return self._sources

    def close(self) -> None:
        database, self._database = self._database, None
        self._key = None
        self._sources = {}
        if database is not None:
            database.close()

    def _fill(self, grown: Mapping[str, IndexedLog], as_of: int, signal: AbortSignal) -> None:
        for session_id, log in grown.items():
            documents = _closing_documents(self._root, log, as_of, signal)
            if not documents:
                continue
            if self._database is None:
                self._database = open_memory(locate_index("", MEMORY))
            connection = self._database.connection
            writer = IndexWriter(connection, partial(begin_writing, connection))
            entry = replace(log, newest=as_of)
            writer.start_log(log.id, replaces=False)
            writer.add_documents(documents)
            writer.finish_log(entry, array("q"))
            writer.commit()
            self._sources[session_id] = Source(connection, entry)


def _closing_documents(
    root: Path, log: IndexedLog, as_of: int, signal: AbortSignal
) -> Sequence[NewDocument]:
    assert isinstance(log.header, SessionHeader)
    rules = SessionValidator(session_id=log.header.id, is_seeded=log.header.is_seeded)
    names = ToolNames()
    count = last_time = 0
    try:
        with EventStream(root, log.found, signal=signal) as stream:
            for event in stream:
                if event["time"] > as_of:
                    break
                rules.accept(event)
                if event["type"] in TEXT_PARTS:
                    names.of(event)
                count, last_time = count + 1, event["time"]
    except SessionQueryError as error:
        if error.code == ABORTED:
            raise
        # It was readable a moment ago and will be looked at again by the next search.
        return ()
    return list(_documents(log.id, closing_rows(rules, count, last_time), names))


def _documents(log_id: int, events: Iterable[Event], names: ToolNames) -> Iterable[NewDocument]:
    for event in events:
        text = event_text(event)
        if text:
            surface: Surface = "current" if "surfaceOp" in event else "log-only"
            document = make_document(log_id, event, text, surface, None, names.of(event))
            yield document._replace(closing=1)

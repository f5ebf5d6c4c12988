"""The in-memory index of live sessions, beside the one of the store."""

from __future__ import annotations

import sqlite3
from array import array
from dataclasses import dataclass
from functools import partial
from typing import Final

from dsh_memory.sessionquery.disk.discovery import FoundLog, LogRevision
from dsh_memory.sessionquery.errors import PERSISTENCE_FAILED, SessionQueryError
from dsh_memory.sessionquery.index.build.scanning import hash_text, tools_json
from dsh_memory.sessionquery.index.build.writer import IndexWriter, NewDocument, begin_writing
from dsh_memory.sessionquery.index.file.catalog import IndexedLog
from dsh_memory.sessionquery.index.file.database import IndexDatabase, open_memory
from dsh_memory.sessionquery.index.file.location import MEMORY, locate_index
from dsh_memory.sessionquery.index.file.schema import SEQ_BITS, SURFACE_NUMBERS, TYPE_NUMBERS
from dsh_memory.sessionquery.index.query.cursors import pack_document, session_digest
from dsh_memory.sessionquery.index.query.phrase import searchable
from dsh_memory.sessionquery.live import LiveSession, LiveSessions, LoadedLog
from dsh_memory.sessionquery.log.searchable_text import PayloadError, event_text
from dsh_memory.sessionquery.log.tool_names import ToolNames
from dsh_memory.sessionquery.model.sessions import Event, Surface

_NOWHERE: Final = LogRevision(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Known:
    log: IndexedLog
    revision: tuple[int, int]


class LiveIndex:
    """Follows a `LiveSessions` source. One thread at a time."""

    def __init__(self, live: LiveSessions) -> None:
        self._live = live
        self._known: dict[str, _Known] = {}
        self._database: IndexDatabase | None = None

    def synchronize(self) -> dict[str, IndexedLog]:
        """Take in what changed and return the live sessions by id.

        Raises:
            SessionQueryError: ``PERSISTENCE_FAILED`` for a session whose text cannot be read; the
                others are taken in, and later calls try again.
        """
        sessions = {session.header.id: session for session in self._live.all()}
        if not sessions and not self._known:
            return {}
        writer = IndexWriter(self.connection, partial(begin_writing, self.connection))
        failure: SessionQueryError | None = None
        try:
            for session_id in self._known.keys() - sessions.keys():
                writer.remove_log(self._known.pop(session_id).log.id)
            for session_id, session in sessions.items():
                revision = session.revision
                known = self._known.get(session_id)
                if known is None or known.revision != revision:
                    try:
                        self._known[session_id] = self._take(writer, session, known)
                    except SessionQueryError as error:
                        failure = failure or error
            writer.commit()
        except BaseException:
            self.close()
            raise
        if failure is not None:
            raise failure
        return {session_id: known.log for session_id, known in self._known.items()}

    @property
    def connection(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = open_memory(locate_index("", MEMORY))
        return self._database.connection

    def close(self) -> None:
        database, self._database = self._database, None
        self._known.clear()
        if database is not None:
            database.close()

    def _take(self, writer: IndexWriter, session: LiveSession, known: _Known | None) -> _Known:
        snapshot = session.snapshot()
        log_id = session.identity
        documents, packed = _documents(log_id, snapshot)
        times = array("q", (event["time"] for event in snapshot.events))
        log = IndexedLog(
            id=log_id,
            found=FoundLog("", str(log_id), "", "plain", _NOWHERE),
            read_at_ns=0,
            bytes_hash=None,
            family=None,
            header=session.header,
            failure=None,
            row_count=snapshot.row_count,
            oldest=min(times, default=None),
            newest=max(times, default=None),
            content=session_digest(session.header, snapshot.row_count, packed),
        )
        if known is not None and known.revision[0] != session.identity:
            writer.remove_log(known.log.id)
            known = None
        writer.start_log(log_id, replaces=known is not None)
        writer.add_documents(documents)
        writer.finish_log(log, times)
        return _Known(log, (session.identity, snapshot.row_count))


def _documents(log_id: int, snapshot: LoadedLog) -> tuple[list[NewDocument], bytearray]:
    documents: list[NewDocument] = []
    packed = bytearray()
    names = ToolNames()
    for event, surface in zip(snapshot.events, snapshot.surfaces, strict=True):
        try:
            text = searchable(event_text(event))
        except PayloadError as error:
            raise SessionQueryError(
                f"The live session {snapshot.header.id!r} cannot be searched: {error}.",
                code=PERSISTENCE_FAILED,
            ) from error
        if not text:
            continue
        replacer = snapshot.replaced_by.get(event["seq"])
        shadowed_at = None if replacer is None else snapshot.events[replacer]["time"]
        document = make_document(log_id, event, text, surface, shadowed_at, names.of(event))
        packed += pack_document(event["seq"], document.type, document.time, document.hash)
        documents.append(document)
    return documents, packed


def make_document(
    log_id: int,
    event: Event,
    text: str,
    surface: Surface,
    shadowed_at: int | None,
    tools: tuple[str, ...],
) -> NewDocument:
    """Return an event with its text (`searchable`) as a document of an index."""
    return NewDocument(
        id=log_id << SEQ_BITS | event["seq"],
        type=TYPE_NUMBERS[event["type"]],
        surface=SURFACE_NUMBERS[surface],
        time=event["time"],
        length=len(text),
        closing=0,
        shadowed_at=shadowed_at,
        hash=hash_text(text),
        tools=tools_json(tools),
        text=text,
    )

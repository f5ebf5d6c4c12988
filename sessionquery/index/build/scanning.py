"""Turning one log into documents for the index."""

from __future__ import annotations

import hashlib
import json
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.discovery import RECENT_NS, FoundLog
from dsh_memory.sessionquery.disk.header import HeaderProblem
from dsh_memory.sessionquery.disk.header_reader import read_header
from dsh_memory.sessionquery.errors import ABORTED, PERSISTENCE_FAILED, SessionQueryError
from dsh_memory.sessionquery.index.build.writer import IndexWriter, NewDocument
from dsh_memory.sessionquery.index.file.catalog import IndexedLog, LogFailure, hash_file
from dsh_memory.sessionquery.index.file.schema import SEQ_BITS, SURFACE_NUMBERS, TYPE_NUMBERS
from dsh_memory.sessionquery.index.query.cursors import (
    PACKED_DOCUMENT,
    pack_document,
    session_digest,
)
from dsh_memory.sessionquery.index.query.phrase import searchable
from dsh_memory.sessionquery.log.scan import ScannedLog, scan_log
from dsh_memory.sessionquery.model.children import ChildrenOf
from dsh_memory.sessionquery.model.event_types import SURFACE_TYPES

LARGE_TEXT: Final = 4 << 20
"""Documents of one log are handed over in pieces of this many code points."""

HASH_BYTES: Final = 8

_PIECE: Final = 1 << 20

Send = Callable[..., None]
"""``send(cost, function, *arguments)``: have `function` called in the writing thread. `cost` is
the memory that the arguments hold, in code points."""

_SHADOWED: Final = SURFACE_NUMBERS["shadowed"]
_PROVISIONAL: Final = tuple(
    SURFACE_NUMBERS["current" if name in SURFACE_TYPES else "log-only"] for name in TYPE_NUMBERS
)


@dataclass(frozen=True, slots=True)
class ScanTask:
    """A log to be read.

    Attributes:
        log_id: Its number in the index.
        found: The log.
        replaces: Whether the index may have documents of it.
        family: Hash of the other logs' revisions on which it depends.
        children: Where its subagents are looked up (`sessionquery.store.subagents`).
    """

    log_id: int
    found: FoundLog
    replaces: bool
    family: bytes | None
    children: ChildrenOf


class LogScanner:
    """Reads logs and sends their documents to a writer.

    Args:
        root: The sessions directory.
        writer: Gets the documents, through `send`.
        send: See `Send`.
        signal: Ends the reading with ``ABORTED``.
    """

    def __init__(self, root: Path, writer: IndexWriter, send: Send, signal: AbortSignal) -> None:
        self._root = root
        self._writer = writer
        self._send = send
        self._signal = signal

    def scan(self, task: ScanTask) -> IndexedLog | None:
        """Read one log.

        Returns:
            What the index will remember of it, None if the file is gone.

        Raises:
            SessionQueryError: ``ABORTED``.
        """
        read_at = time.time_ns()
        times = task.found.revision
        try:
            # Hashed first: what is written between hashing and reading shows in the next check.
            recent = read_at - max(times.mtime_ns, times.ctime_ns) <= RECENT_NS
            bytes_hash = hash_file(task.found.path(self._root)) if recent else None
            with scan_log(
                self._root, task.found, signal=self._signal, children=task.children
            ) as scan:
                return _OneScan(self, task, scan, read_at, bytes_hash).run()
        except SessionQueryError as error:
            if error.code == ABORTED:
                raise
            return self._failed(task, error, read_at, bytes_hash)
        except FileNotFoundError:
            self._gone(task)
            return None
        except OSError as error:
            failure = SessionQueryError(
                f"{task.found.path(self._root)} cannot be read: {error.strerror or error}.",
                code=PERSISTENCE_FAILED,
            )
            failure.__cause__ = error
            return self._failed(task, failure, read_at, None)

    def _gone(self, task: ScanTask) -> None:
        if task.replaces:
            self._send(0, self._writer.remove_log, task.log_id)

    def _failed(
        self, task: ScanTask, error: SessionQueryError, read_at: int, bytes_hash: bytes | None
    ) -> IndexedLog | None:
        if isinstance(error.__cause__, FileNotFoundError):
            self._gone(task)
            return None
        failure: LogFailure | None = LogFailure(error.code, error.message.rstrip("."))
        if isinstance(error.__cause__, OSError):
            # The file may become readable without any change of its own: look again every time.
            read_at, bytes_hash = 0, None
        try:
            header = read_header(self._root, task.found)
        except SessionQueryError as header_error:
            if isinstance(header_error.__cause__, FileNotFoundError):
                self._gone(task)
                return None
            header = HeaderProblem("fatal", header_error.message.rstrip("."))
        if isinstance(header, HeaderProblem):
            failure = None
        log = IndexedLog(
            id=task.log_id,
            found=task.found,
            read_at_ns=read_at,
            bytes_hash=bytes_hash,
            family=task.family,
            header=header,
            failure=failure,
            row_count=0,
            oldest=None,
            newest=None,
            content=b"",
        )
        self._send(0, self._writer.fail_log, log)
        return log


class _OneScan:
    def __init__(
        self,
        scanner: LogScanner,
        task: ScanTask,
        scan: ScannedLog,
        read_at: int,
        bytes_hash: bytes | None,
    ) -> None:
        self._send = scanner._send
        self._writer = scanner._writer
        self._task = task
        self._scan = scan
        self._read_at = read_at
        self._bytes_hash = bytes_hash
        self._packed = bytearray()
        self._streaming = False

    def run(self) -> IndexedLog:
        try:
            rest, size = self._read()
        except BaseException:
            if self._streaming:
                self._send(0, self._writer.abandon_log)
            raise
        scan, task = self._scan, self._task
        row_count, times = scan.row_count, scan.times
        replaced = {seq: times[by] for seq, by in scan.replaced_by.items()}
        log = self._indexed(times)
        if self._streaming:
            self._send(size, self._writer.add_documents, rest)
            self._send(
                0, self._writer.correct_documents, task.log_id, row_count, list(replaced.items())
            )
        else:
            self._send(0, self._writer.start_log, task.log_id, replaces=task.replaces)
            if replaced or (rest and rest[-1].id >= (task.log_id << SEQ_BITS | row_count)):
                rest = _finished(rest, task.log_id << SEQ_BITS, row_count, replaced)
            self._send(size, self._writer.add_documents, rest)
        self._send(0, self._writer.finish_log, log, times)
        return log

    def _read(self) -> tuple[list[NewDocument], int]:
        base = self._task.log_id << SEQ_BITS
        packed = self._packed
        documents: list[NewDocument] = []
        size = 0
        for seq, kind, when, text, tools in self._scan:
            if size >= LARGE_TEXT:
                # Not before the scan has moved on and let go of the bytes of a huge event.
                self._send_piece(documents, size)
                documents, size = [], 0
            text = searchable(text)
            length = len(text)
            digest = hash_text(text)
            number = TYPE_NUMBERS[kind]
            packed += pack_document(seq, number, when, digest)
            documents.append(
                NewDocument(
                    base | seq,
                    number,
                    _PROVISIONAL[number],
                    when,
                    length,
                    0,
                    None,
                    digest,
                    tools_json(tools),
                    text,
                )
            )
            size += length
            del text
        return documents, size

    def _send_piece(self, documents: list[NewDocument], size: int) -> None:
        if not self._streaming:
            # What is undone if this log turns out to be corrupt is this log alone.
            self._send(0, self._writer.commit)
            self._send(0, self._writer.start_log, self._task.log_id, replaces=self._task.replaces)
            self._streaming = True
        self._send(size, self._writer.add_documents, documents)

    def _indexed(self, times: array[int]) -> IndexedLog:
        scan, task = self._scan, self._task
        count = len(self._packed) // PACKED_DOCUMENT
        while count and self._seq_of(count - 1) >= scan.row_count:
            count -= 1
        on_disk = memoryview(self._packed)[: count * PACKED_DOCUMENT]
        return IndexedLog(
            id=task.log_id,
            found=replace(task.found, revision=scan.revision),
            read_at_ns=self._read_at,
            bytes_hash=self._bytes_hash,
            family=task.family,
            header=scan.header,
            failure=None,
            row_count=scan.row_count,
            oldest=min(times, default=None),
            newest=max(times, default=None),
            content=session_digest(scan.header, scan.row_count, on_disk),
        )

    def _seq_of(self, position: int) -> int:
        start = position * PACKED_DOCUMENT
        return int.from_bytes(self._packed[start : start + 8], "little", signed=True)


def hash_text(text: str) -> bytes:
    """Return the hash that stands for a document's text."""
    if len(text) <= _PIECE:
        return hashlib.blake2b(text.encode("utf-8"), digest_size=HASH_BYTES).digest()
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    for start in range(0, len(text), _PIECE):
        digest.update(text[start : start + _PIECE].encode("utf-8"))
    return digest.digest()


@lru_cache(maxsize=1024)
def tools_json(tools: tuple[str, ...]) -> str | None:
    """Return tool names in the form in which they are stored."""
    return json.dumps(tools) if tools else None


def _finished(
    documents: Sequence[NewDocument], base: int, row_count: int, replaced: dict[int, int]
) -> list[NewDocument]:
    """Return the documents with what is only known at the end of the log."""
    out: list[NewDocument] = []
    for document in documents:
        seq = document.id - base
        if seq in replaced:
            document = document._replace(surface=_SHADOWED, shadowed_at=replaced[seq])
        if seq >= row_count:
            document = document._replace(closing=1)
        out.append(document)
    return out

"""Writing documents and logs into an index, in large statements and bounded transactions.

A log's documents and its catalog row always change in one transaction, so that a reader or a
killed writer never leaves a log half replaced. One multi-row statement costs one hand-over of the
interpreter lock; row by row, a writer thread would wait for it at every row.
"""

from __future__ import annotations

import sqlite3
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

from dsh_memory.sessionquery.index.file.catalog import IndexedLog, save_log
from dsh_memory.sessionquery.index.file.schema import SEQ_BITS, SEQ_MASK, SURFACE_NUMBERS

ROWS_A_STATEMENT: Final = 1000
TEXT_A_STATEMENT: Final = 1 << 20
"""Before each statement of several rows FTS5 writes out what it has buffered, so this is also the
size of its smallest segments. Larger ones were not faster to write and took more memory."""

HUGE_TEXT: Final = 1 << 20
"""A text from this size on (code points) is inserted alone."""

TEXT_A_TRANSACTION: Final = 24 << 20
SECONDS_A_TRANSACTION: Final = 5.0
_STATEMENT_SIZES: Final = (1000, 100, 10, 1)
_BUSY_SECONDS: Final = 10.0

_SHADOWED: Final = SURFACE_NUMBERS["shadowed"]


class NewDocument(NamedTuple):
    """A document as it is stored.

    Attributes:
        id: ``log id << SEQ_BITS | seq``.
        type, surface: Numbers (`schema`).
        time: ms.
        length: Code points of the text.
        closing: 1 for a row that is not on disk.
        shadowed_at: Time of the row that replaced it.
        hash: 8 bytes over the text.
        tools: JSON list of tool names, None without any.
        text: As it is searched.
    """

    id: int
    type: int
    surface: int
    time: int
    length: int
    closing: int
    shadowed_at: int | None
    hash: bytes
    tools: str | None
    text: str


class IndexWriter:
    """Replaces and removes logs. Every method runs in the one thread that writes.

    Args:
        connection: In autocommit mode.
        begin: Opens a write transaction, waiting for other writers.

    Attributes:
        purged: Whether deleted text was taken out of the index, and must now leave the files.
    """

    def __init__(self, connection: sqlite3.Connection, begin: Callable[[], None]) -> None:
        self._connection = connection
        self._run = connection.execute
        self._begin = begin
        self._pending: list[NewDocument] = []
        self._pending_text = 0
        self._text = 0
        self._began_at = 0.0
        self._open = False
        self._known: dict[int, tuple[int, int, int | None, bytes, int]] = {}
        self._purge = False
        self.purged = False

    def interrupt(self) -> None:
        """Stop a running statement; may be called from another thread."""
        self._connection.interrupt()

    def start_log(self, log_id: int, *, replaces: bool) -> None:
        """Begin to write one log.

        Args:
            log_id: Its number.
            replaces: Whether the index may have documents of it; equal ones are kept as they are.
        """
        self._ensure_transaction()
        self._known = {}
        if replaces:
            first, last = _id_range(log_id)
            for number, kind, surface, when, shadowed_at, digest, closing in self._run(
                "SELECT id, type, surface, time, shadowed_at, hash, closing FROM docs"
                " WHERE id BETWEEN ? AND ?",
                (first, last),
            ):
                self._known[number] = (surface, when, shadowed_at, digest + bytes([kind]), closing)

    def add_documents(self, documents: Iterable[NewDocument]) -> None:
        """Take the next documents of the log, in ascending order."""
        if not self._known:
            self._append(documents)
            return
        for document in documents:
            known = self._known.pop(document.id, None)
            if known is None:
                self._append((document,))
                continue
            surface, when, shadowed_at, digest, closing = known
            same = digest == document.hash + bytes([document.type]) and when == document.time
            if not same or closing != document.closing:
                self._flush()
                self._delete_documents([document.id], purge=not closing)
                self._append((document,))
            elif (surface, shadowed_at) != (document.surface, document.shadowed_at):
                self._run(
                    "UPDATE docs SET surface = ?, shadowed_at = ? WHERE id = ?",
                    (document.surface, document.shadowed_at, document.id),
                )

    def correct_documents(
        self, log_id: int, row_count: int, replaced: Iterable[tuple[int, int]]
    ) -> None:
        """Correct documents that were added before the end of their log was known.

        Args:
            log_id: The log.
            row_count: Documents from this number on are closing rows.
            replaced: ``(seq, time of the replacing row)``.
        """
        self._flush()
        first, last = _id_range(log_id)
        self._run("UPDATE docs SET closing = 1 WHERE id BETWEEN ? AND ?", (first + row_count, last))
        self._connection.executemany(
            "UPDATE docs SET surface = ?, shadowed_at = ? WHERE id = ?",
            ((_SHADOWED, when, log_id << SEQ_BITS | seq) for seq, when in replaced),
        )

    def finish_log(self, log: IndexedLog, times: array[int]) -> None:
        """Complete the log: what was not added again is removed, and its row is written."""
        if self._known:
            self._flush()
            purge = any(not closing for *_, closing in self._known.values())
            self._delete_documents(sorted(self._known), purge=purge)
            self._known = {}
        save_log(self._connection, log)
        self._run("INSERT OR REPLACE INTO row_times VALUES(?, ?)", (log.id, times.tobytes()))
        self._commit_if_due()

    def fail_log(self, log: IndexedLog) -> None:
        """Record a log that cannot be searched; its documents are removed."""
        self._ensure_transaction()
        self._flush()
        self._delete_log_documents(log.id)
        save_log(self._connection, log)
        self._run("INSERT OR REPLACE INTO row_times VALUES(?, ?)", (log.id, b""))
        self._commit_if_due()

    def abandon_log(self) -> None:
        """Undo an unfinished log. Finished ones of the same transaction are undone with it,
        unless `commit` was called before `start_log`."""
        self._pending.clear()
        self._pending_text = 0
        self._known = {}
        if self._open:
            self._open = False
            if self._connection.in_transaction:
                self._run("ROLLBACK")

    def remove_log(self, log_id: int) -> None:
        """Remove a log and its documents."""
        self._ensure_transaction()
        self._flush()
        self._delete_log_documents(log_id)
        self._run("DELETE FROM logs WHERE id = ?", (log_id,))
        self._run("DELETE FROM row_times WHERE log = ?", (log_id,))
        self._commit_if_due()

    def save_row(self, log: IndexedLog) -> None:
        """Write a log's row whose documents are unchanged."""
        self._ensure_transaction()
        save_log(self._connection, log)

    def run_in_transaction(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Let `work` write beside the documents."""
        self._ensure_transaction()
        work(self._connection)

    def commit(self) -> None:
        """Make everything finished so far visible."""
        if not self._open:
            return
        self._flush()
        if self._purge:
            self._run("INSERT OR REPLACE INTO meta VALUES('purge', 1)")
        self._run("UPDATE meta SET value = value + 1 WHERE key = 'change'")
        self._run("COMMIT")
        self._open = False
        self._text = 0

    def purge_deleted_terms(self) -> None:
        """Take the words of deleted documents out of the file.

        FTS5 only marks them as deleted; merging everything into one segment drops them.
        """
        row = self._run("SELECT value FROM meta WHERE key = 'purge'").fetchone()
        if row is None:
            return
        self._ensure_transaction()
        self._run("INSERT INTO fts(fts) VALUES('optimize')")
        self._run("DELETE FROM meta WHERE key = 'purge'")
        self._purge = False
        self.commit()
        self.purged = True

    def _append(self, documents: Iterable[NewDocument]) -> None:
        pending = self._pending
        for document in documents:
            pending.append(document)
            self._pending_text += document.length
            if len(pending) >= ROWS_A_STATEMENT or self._pending_text >= TEXT_A_STATEMENT:
                self._flush()

    def _flush(self) -> None:
        rows = self._pending
        if not rows:
            return
        self._insert("docs", 9, [value for row in rows for value in row[:9]])
        ordinary = [row for row in rows if row.length < HUGE_TEXT]
        texts = [value for row in ordinary for value in (row.id, row.text)]
        self._insert("texts(id, text)", 2, texts)
        self._insert("fts(rowid, text)", 2, texts)
        if len(ordinary) < len(rows):
            for row in rows:
                if row.length >= HUGE_TEXT:
                    self._insert_huge_text(row.id, row.text)
        self._text += self._pending_text
        self._pending_text = 0
        rows.clear()

    def _insert(self, table: str, columns: int, values: Sequence[object]) -> None:
        # Few sizes, so that few statements stay cached: each keeps what was last bound to it.
        left = len(values) // columns
        start = 0
        for size in _STATEMENT_SIZES:
            while left >= size:
                end = start + size * columns
                self._run(_insert_statement(table, columns, size), values[start:end])
                start, left = end, left - size

    def _insert_huge_text(self, number: int, text: str) -> None:
        """Insert a text with as few copies of it at a time as possible."""
        statement = "INSERT INTO texts(id, text) SELECT :id, :text WHERE :id >= 0"
        self._run(statement, {"id": number, "text": text})
        # A cached statement keeps what was bound last: let that be nothing.
        self._run(statement, {"id": -1, "text": ""})
        self._run("INSERT INTO fts(rowid, text) SELECT id, text FROM texts WHERE id = ?", (number,))

    def _delete_documents(self, ids: Sequence[int], *, purge: bool) -> None:
        for number in ids:
            self._run(
                "INSERT INTO fts(fts, rowid, text) SELECT 'delete', id, text FROM texts"
                " WHERE id = ?",
                (number,),
            )
            self._run("DELETE FROM texts WHERE id = ?", (number,))
            self._run("DELETE FROM docs WHERE id = ?", (number,))
        self._purge = self._purge or purge

    def _delete_log_documents(self, log_id: int) -> None:
        bounds = _id_range(log_id)
        found = self._run("SELECT 1 FROM docs WHERE id BETWEEN ? AND ? LIMIT 1", bounds).fetchone()
        if found is None:
            return
        self._run(
            "INSERT INTO fts(fts, rowid, text) SELECT 'delete', id, text FROM texts"
            " WHERE id BETWEEN ? AND ?",
            bounds,
        )
        self._run("DELETE FROM texts WHERE id BETWEEN ? AND ?", bounds)
        self._run("DELETE FROM docs WHERE id BETWEEN ? AND ?", bounds)
        self._purge = True

    def _ensure_transaction(self) -> None:
        if not self._open:
            self._begin()
            self._open = True
            self._began_at = time.monotonic()

    def _commit_if_due(self) -> None:
        waiting = self._text + self._pending_text
        if (
            waiting >= TEXT_A_TRANSACTION
            or time.monotonic() - self._began_at >= SECONDS_A_TRANSACTION
        ):
            self.commit()


@cache
def _insert_statement(table: str, columns: int, rows: int) -> str:
    row = "(" + ",".join("?" * columns) + ")"
    return f"INSERT INTO {table} VALUES " + ",".join([row] * rows)


def begin_writing(connection: sqlite3.Connection) -> None:
    """Open a write transaction; another program may hold the database for a while.

    Raises:
        sqlite3.OperationalError: It is still locked after ten seconds.
    """
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise


def _id_range(log_id: int) -> tuple[int, int]:
    first = log_id << SEQ_BITS
    return first, first | SEQ_MASK

"""The life of an index file: opening, creating, replacing a broken one, noticing interference.

Rules that keep several processes safe with one file:

- A new file is made complete under another name and renamed in, under an exclusive lock of the
  folder; opening happens under a shared one. So nobody sees half a file or an old one's log.
- Only the holder of the writer lock (``<index>.lock``) writes rows or copies the write-ahead log
  into the main file, and then notes the main file's times in the lock file. SQLite itself copies
  nothing by the way (``wal_autocheckpoint=0``). Times that differ from the note while nobody writes
  mean that something else changed the file. SQLite pages carry no checksums, so nothing in it
  can be trusted then and it is rebuilt.
- A damaged log is as if what it lost had never been written, which is harmless. Only where a reader
  kept the log from being emptied after copying does the main file need all of it: then the note
  tells the log's times too.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import INDEX_FAILED, SessionQueryError
from dsh_memory.sessionquery.index.file.file_locks import (
    UnusableIndexError,
    carries_foreign_lock,
    folder_lock,
    inode_of,
    left_as_noted,
    lock_path,
    log_path,
    renew_note,
    size_of,
    try_writer_lock,
    write_note,
    writer_lock,
)
from dsh_memory.sessionquery.index.file.location import IndexLocation, inspect_file, refuse
from dsh_memory.sessionquery.index.file.schema import PAGE_SIZE, create_tables

BUSY_MS: Final = 200

OPENING_SECONDS: Final = 2.0
"""How long an index that something else keeps for itself is waited for."""

LOG_BYTES: Final = 16 << 20
"""A write-ahead log larger than this is copied into the main file."""

_UNUSABLE: Final = frozenset(
    (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
    )
)
_CORRUPT: Final = frozenset(
    (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,
        # The tables contradict each other.
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
    )
)


class Finish(Protocol):
    """Tells `IndexDatabase.writing` whether text was deleted."""

    def __call__(self, *, purged: bool) -> None: ...


class BrokenIndexError(Exception):
    """The index file is damaged or was changed by something else."""


def translate(error: sqlite3.Error) -> Exception:
    """Return what an error of SQLite means: unusable place, broken file, or the error itself."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        # Python's own: a text column that is no text.
        return BrokenIndexError(str(error)) if type(error) is sqlite3.OperationalError else error
    if code & 0xFF in _UNUSABLE:
        return UnusableIndexError(str(error))
    if code & 0xFF in _CORRUPT:
        return BrokenIndexError(str(error))
    return error


class IndexDatabase:
    """An open index.

    Args:
        connection: In autocommit mode, usable from any one thread at a time.
        path: The file, None in memory.
        inode: The main file's at opening; another one there means that it was replaced.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None, inode: int = 0) -> None:
        self.connection = connection
        self.path = path
        self.inode = inode
        # Also if nobody closes it: then SQLite would copy the log at the end, without a note.
        self._finish = weakref.finalize(self, _close, connection, path, inode)

    @property
    def in_memory(self) -> bool:
        return self.path is None

    def check_unchanged(self, signal: AbortSignal) -> None:
        """Make sure that nothing but this program changed the file.

        Raises:
            BrokenIndexError: It was replaced (open it again) or changed (rebuild it).
            UnusableIndexError: It cannot be looked at.
            SessionQueryError: ``ABORTED`` while waiting for a writer.
        """
        if self.path is None:
            return
        if inode_of(self.path) != self.inode:
            raise BrokenIndexError("the index file was replaced")
        if left_as_noted(self.path):
            return
        # A writer may be between copying its log and noting the times: wait for it.
        with writer_lock(self.path, signal):
            if not left_as_noted(self.path):
                raise BrokenIndexError("the index file was changed by something else")

    @contextlib.contextmanager
    def writing(self, signal: AbortSignal) -> Iterator[Finish]:
        """Hold the writer lock.

        What was committed stays in the write-ahead log until that is large, except after
        ``finish(purged=True)``: then deleted text must leave the files now.

        Raises:
            SessionQueryError: ``ABORTED`` while waiting for the lock.
            UnusableIndexError: There can be no lock.
        """
        if self.path is None:
            yield _nothing
            return
        clean = False

        def finish(*, purged: bool) -> None:
            nonlocal clean
            clean = purged

        with writer_lock(self.path, signal):
            try:
                yield finish
            finally:
                self._roll_back()
                if clean or size_of(log_path(self.path)) > LOG_BYTES:
                    _copy_log(self.connection, self.path, self.inode)
                else:
                    renew_note(self.path)

    @contextlib.contextmanager
    def writing_if_free(self) -> Iterator[bool]:
        """Hold the writer lock unless another process does; tells whether it is held."""
        if self.path is None:
            yield True
            return
        with try_writer_lock(self.path) as free:
            try:
                yield free
            finally:
                self._roll_back()
                if free:
                    renew_note(self.path)

    def close(self) -> None:
        """Close the connection, leaving no log that SQLite would copy without a note."""
        self._finish()

    def abandon(self) -> None:
        """Close the connection to a file that is not used any more."""
        self._finish.detach()
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()

    def _roll_back(self) -> None:
        if self.connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")


def _close(connection: sqlite3.Connection, path: Path | None, inode: int) -> None:
    if path is not None:
        with contextlib.suppress(OSError, sqlite3.Error, UnusableIndexError):
            if size_of(log_path(path)) and inode_of(path) == inode:
                with try_writer_lock(path) as free:
                    if free:
                        _copy_log(connection, path, inode)
    connection.close()


def _copy_log(connection: sqlite3.Connection, path: Path, inode: int) -> None:
    with contextlib.suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if inode_of(path) == inode:
        write_note(path)


def _nothing(*, purged: bool) -> None:
    """In memory there is no file to clean."""


def open_database(location: IndexLocation) -> IndexDatabase:
    """Open a home's index, creating it if there is none and replacing a damaged one.

    Raises:
        SessionQueryError: ``INDEX_FAILED``: the place holds something else.
        UnusableIndexError: The file cannot be made or opened.
        BrokenIndexError: It broke while it was opened.
    """
    if location.path is None:
        return open_memory(location)
    path = location.path
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with folder_lock(path.parent, exclusive=False):
            if inspect_file(location) == "ours":
                return _connect(path)
        with folder_lock(path.parent, exclusive=True):
            owner = inspect_file(location)
            if owner == "foreign" or (owner == "garbage" and location.explicit):
                raise refuse(path)
            if owner == "absent" and location.explicit and carries_foreign_lock(path):
                raise refuse(lock_path(path))
            if owner != "ours":
                _install_new(location)
            return _connect(path)
    except UnicodeDecodeError as error:
        # In a message of SQLite's about a damaged schema.
        raise BrokenIndexError("the index file is damaged") from error
    except OSError as error:
        raise UnusableIndexError(f"{error.strerror or error}") from error
    except sqlite3.Error as error:
        raise translate(error) from error


def open_memory(location: IndexLocation) -> IndexDatabase:
    """Open an empty index in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        _require_fts5(connection)
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("BEGIN")
        create_tables(connection, home=location.home)
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return IndexDatabase(connection, None)


def replace_broken(location: IndexLocation, inode: int) -> None:
    """Put a new, empty index in place of the file with this inode.

    Nothing happens if another process has already replaced it.

    Raises:
        UnusableIndexError: It cannot be replaced.
    """
    path = location.path
    assert path is not None
    try:
        with folder_lock(path.parent, exclusive=True):
            if inode_of(path) in (inode, None):
                _install_new(location)
    except OSError as error:
        raise UnusableIndexError(f"{error.strerror or error}") from error
    except sqlite3.Error as error:
        raise translate(error) from error


def _install_new(location: IndexLocation) -> None:
    path = location.path
    assert path is not None
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(6)}.new")
    try:
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        connection = sqlite3.connect(fresh, isolation_level=None)
        try:
            _require_fts5(connection)
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            # The marks must be in the main file from the start: others look there only.
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("BEGIN IMMEDIATE")
            create_tables(connection, home=location.home)
            connection.execute("COMMIT")
            # Switching over writes the header, so it must not be left to the first user.
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        with writer_lock(path, None):
            for name in (f"{path}-wal", f"{path}-shm"):
                Path(name).unlink(missing_ok=True)
            fresh.replace(path)
            write_note(path)
    finally:
        fresh.unlink(missing_ok=True)


def _connect(path: Path) -> IndexDatabase:
    connection = sqlite3.connect(
        path, timeout=OPENING_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        if not os.access(path, os.W_OK):
            raise UnusableIndexError("the index file is not writable")
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise UnusableIndexError(f"the file system allows no write-ahead log (mode {mode})")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -32768")
        connection.execute("SELECT count(*) FROM meta").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        inode = inode_of(path)
    except BaseException:
        connection.close()
        raise
    assert inode is not None
    return IndexDatabase(connection, path, inode)


def _require_fts5(connection: sqlite3.Connection) -> None:
    options = {name for (name,) in connection.execute("PRAGMA compile_options")}
    if "ENABLE_FTS5" in options:
        return
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.probe USING fts5(text)")
        connection.execute("DROP TABLE temp.probe")
    except sqlite3.Error as error:
        raise SessionQueryError(
            f"This Python's SQLite {sqlite3.sqlite_version} has no FTS5, which search needs.",
            code=INDEX_FAILED,
            hint="Use a Python whose sqlite3 module has FTS5.",
        ) from error

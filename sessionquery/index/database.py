"""The life of an index file: opening, creating, replacing a broken one, noticing interference.

Rules that keep several processes safe with one file:

- A new file is made complete under another name and renamed in, under an exclusive lock of the
  folder; opening happens under a shared one. So nobody sees half a file or an old one's log.
- Only the holder of the writer lock (``<index>.lock``) writes rows or copies the write-ahead log
  into the main file, and then notes the main file's times in the lock file. SQLite itself copies
  nothing by the way (``wal_autocheckpoint=0``). Times that differ from the note while nobody writes
  mean that something else changed the file. SQLite pages carry no checksums, so nothing in it
  can be trusted then and it is rebuilt.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from sessionquery.abort import AbortSignal
from sessionquery.errors import INDEX_FAILED, SessionQueryError
from sessionquery.index.location import IndexLocation, inspect_file, refuse
from sessionquery.index.schema import PAGE_SIZE, create_tables

Stamp = tuple[int, int, int, int]
"""Inode, size, mtime and ctime (ns) of the main database file."""

BUSY_MS: Final = 200

LOG_BYTES: Final = 16 << 20
"""A write-ahead log larger than this is copied into the main file."""

_POLL_SECONDS: Final = 0.02
_WAIT_FOR_FOLDER_SECONDS: Final = 10.0

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
_CORRUPT: Final = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR))


class Finish(Protocol):
    """Tells `IndexDatabase.writing` whether text was deleted."""

    def __call__(self, *, purged: bool) -> None: ...


class UnusableIndexError(Exception):
    """The index file cannot be read or written here; an index in memory can serve instead."""


class BrokenIndexError(Exception):
    """The index file is damaged or was changed by something else."""


def translate(error: sqlite3.Error) -> Exception:
    """Return what an error of SQLite means: unusable place, broken file, or the error itself."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return error
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

    def check_unchanged(self) -> None:
        """Make sure that nothing but this program changed the file.

        Raises:
            BrokenIndexError: It was replaced (open it again) or changed (rebuild it).
        """
        if self.path is None:
            return
        stamp = _stamp_of(self.path)
        if stamp is None or stamp[0] != self.inode:
            raise BrokenIndexError("the index file was replaced")
        if stamp == _read_note(self.path):
            return
        # A writer may be between copying its log and noting the times: wait for it.
        with _writer_lock(self.path, None):
            if _stamp_of(self.path) != _read_note(self.path):
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

        with _writer_lock(self.path, signal):
            try:
                yield finish
            finally:
                self._roll_back()
                if clean or _size_of(_log_path(self.path)) > LOG_BYTES:
                    _copy_log(self.connection, self.path, self.inode)

    @contextlib.contextmanager
    def writing_if_free(self) -> Iterator[bool]:
        """Hold the writer lock unless another process does; tells whether it is held."""
        if self.path is None:
            yield True
            return
        with _try_writer_lock(self.path) as free:
            try:
                yield free
            finally:
                self._roll_back()

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
            if _size_of(_log_path(path)) and _inode_of(path) == inode:
                with _try_writer_lock(path) as free:
                    if free:
                        _copy_log(connection, path, inode)
    connection.close()


def _copy_log(connection: sqlite3.Connection, path: Path, inode: int) -> None:
    with contextlib.suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if _inode_of(path) == inode:
        _write_note(path)


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
        with _folder_lock(path.parent, exclusive=False):
            if inspect_file(location) == "ours":
                return _connect(path)
        with _folder_lock(path.parent, exclusive=True):
            owner = inspect_file(location)
            if owner == "foreign" or (owner == "garbage" and location.explicit):
                raise refuse(location)
            if owner != "ours":
                _install_new(location)
            return _connect(path)
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
        with _folder_lock(path.parent, exclusive=True):
            if _inode_of(path) in (inode, None):
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
        with _writer_lock(path, None):
            for name in (f"{path}-wal", f"{path}-shm"):
                Path(name).unlink(missing_ok=True)
            fresh.replace(path)
            _write_note(path)
    finally:
        fresh.unlink(missing_ok=True)


def _connect(path: Path) -> IndexDatabase:
    connection = sqlite3.connect(
        path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False
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
        inode = _inode_of(path)
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


def _inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _stamp_of(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _log_path(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _read_note(path: Path) -> Stamp | None:
    try:
        parts = _lock_path(path).read_bytes().split()
    except FileNotFoundError:
        return None
    if len(parts) != 4 or not all(part.isdigit() for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2]), int(parts[3])


def _write_note(path: Path) -> None:
    stamp = _stamp_of(path)
    if stamp is None:
        return
    # Padded to one length, so that one write replaces the old note completely.
    text = " ".join(map(str, stamp)).ljust(96).encode("ascii")
    handle = _open_lock(path)
    try:
        os.pwrite(handle, text, 0)
    finally:
        os.close(handle)


def _open_lock(path: Path) -> int:
    try:
        return os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UnusableIndexError(f"{_lock_path(path)}: {error.strerror}") from error


@contextlib.contextmanager
def _folder_lock(folder: Path, *, exclusive: bool) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock_handle(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, None)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _writer_lock(path: Path, signal: AbortSignal | None) -> Iterator[None]:
    handle = _open_lock(path)
    try:
        _lock_handle(handle, fcntl.LOCK_EX, signal)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _try_writer_lock(path: Path) -> Iterator[bool]:
    handle = _open_lock(path)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def _lock_handle(handle: int, kind: int, signal: AbortSignal | None) -> None:
    deadline = None if signal is not None else time.monotonic() + _WAIT_FOR_FOLDER_SECONDS
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pass
        if signal is not None:
            signal.raise_if_aborted()
        elif deadline is not None and time.monotonic() > deadline:
            raise UnusableIndexError("another process holds the index's lock")
        time.sleep(_POLL_SECONDS)

"""The locks around an index file, and the note of how its files were left.

Two locks, both ``flock``: the writer lock on ``<index>.lock``, and one on the folder, shared while
an index is opened and exclusive while a file is put in place. The folder's comes first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dsh_memory.sessionquery.abort import AbortSignal

Stamp = tuple[int, int, int, int]
"""Inode, size, mtime and ctime (ns) of a file."""

_NUMBERS: Final = (4, 7)
_NOTE_BYTES: Final = 192
_POLL_SECONDS: Final = 0.02
_WAIT_SECONDS: Final = 10.0


class UnusableIndexError(Exception):
    """The index file cannot be read or written here; an index in memory can serve instead."""


def inode_of(path: Path) -> int | None:
    """Return the inode of a file, None if there is none."""
    stamp = stamp_of(path)
    return stamp[0] if stamp is not None else None


def size_of(path: Path) -> int:
    """Return the size of a file in bytes, 0 if there is none."""
    stamp = stamp_of(path)
    return stamp[1] if stamp is not None else 0


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file, None if there is none.

    Raises:
        UnusableIndexError: The place cannot be looked at.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableIndexError(f"{path}: {error.strerror}") from error
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def log_path(path: Path) -> Path:
    """Return where SQLite keeps the write-ahead log of a database."""
    return path.with_name(path.name + "-wal")


def lock_path(path: Path) -> Path:
    """Return the file that carries the writer lock and the note."""
    return path.with_name(path.name + ".lock")


def left_as_noted(path: Path) -> bool:
    """Tell whether an index is as the last writer left it: its main file, and its log if a part of
    that was copied while it stayed.

    Raises:
        UnusableIndexError: The note cannot be read.
    """
    note = _read_note(path)
    if not note or _numbers(stamp_of(path)) != note[:4]:
        return False
    return len(note) == 4 or _log_numbers(path) == note[4:]


def write_note(path: Path) -> None:
    """Note how the main file is now, and the log if it is not empty: a part of it may be in the
    main file, which then makes sense together with this very log only.

    The caller holds the writer lock and has just copied the log, or tried to.

    Raises:
        UnusableIndexError: The note cannot be written.
    """
    _write(path, with_log=size_of(log_path(path)) > 0)


def renew_note(path: Path) -> None:
    """Note the log's new state if the last note speaks of the log; after every writing.

    Raises:
        UnusableIndexError: The note cannot be read or written.
    """
    note = _read_note(path)
    if len(note) > 4 and _numbers(stamp_of(path)) == note[:4]:
        _write(path, with_log=True)


def carries_foreign_lock(path: Path) -> bool:
    """Tell whether the place of the lock file is taken by somebody else's file.

    Raises:
        UnusableIndexError: The place cannot be looked at.
    """
    return size_of(lock_path(path)) > 0 and not _read_note(path)


def _read_note(path: Path) -> tuple[int, ...]:
    """Return 4 or 7 numbers: main file, log. None of them if there is no note."""
    place = lock_path(path)
    try:
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise UnusableIndexError(f"{place}: {error.strerror}") from error
    try:
        _require_file(handle, place)
        parts = os.read(handle, _NOTE_BYTES).split()
    finally:
        os.close(handle)
    if len(parts) not in _NUMBERS or not all(part.isdigit() for part in parts):
        return ()
    return tuple(map(int, parts))


def _write(path: Path, *, with_log: bool) -> None:
    numbers = _numbers(stamp_of(path))
    if not numbers:
        return
    if with_log:
        numbers += _log_numbers(path)
    # Padded to one length, so that one write replaces the old note completely.
    text = " ".join(map(str, numbers)).ljust(_NOTE_BYTES).encode("ascii")
    handle = _open_lock(path)
    try:
        os.pwrite(handle, text, 0)
    except OSError as error:
        raise UnusableIndexError(f"{lock_path(path)}: {error.strerror}") from error
    finally:
        os.close(handle)


def _numbers(stamp: Stamp | None) -> tuple[int, ...]:
    return stamp or ()


def _log_numbers(path: Path) -> tuple[int, ...]:
    # SQLite sets the owner of a log whenever it opens one as root, which shows in the ctime.
    return _numbers(stamp_of(log_path(path)))[:3]


def _open_lock(path: Path) -> int:
    place = lock_path(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        handle = os.open(place, flags, 0o600)
    except OSError as error:
        raise UnusableIndexError(f"{place}: {error.strerror}") from error
    try:
        _require_file(handle, place)
    except UnusableIndexError:
        os.close(handle)
        raise
    return handle


def _require_file(handle: int, place: Path) -> None:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise UnusableIndexError(f"{place} is not a file")


@contextlib.contextmanager
def folder_lock(folder: Path, *, exclusive: bool) -> Iterator[None]:
    """Hold the lock of the folder of an index.

    Raises:
        UnusableIndexError: Another process keeps it for more than ten seconds.
        OSError: There is no such folder.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock_handle(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, None)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def writer_lock(path: Path, signal: AbortSignal | None) -> Iterator[None]:
    """Hold the writer lock.

    Args:
        path: The index.
        signal: Ends the waiting, which is otherwise as long as the other writer works; None waits
            for ten seconds.

    Raises:
        SessionQueryError: ``ABORTED``.
        UnusableIndexError: There can be no lock file, or the ten seconds are over.
    """
    handle = _open_lock(path)
    try:
        _lock_handle(handle, fcntl.LOCK_EX, signal)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def try_writer_lock(path: Path) -> Iterator[bool]:
    """Hold the writer lock if it is free; tells whether it was."""
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
    deadline = None if signal is not None else time.monotonic() + _WAIT_SECONDS
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

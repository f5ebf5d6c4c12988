"""The locks around an index file, and the note of how its main file was left.

Two locks, both ``flock``: the writer lock on ``<index>.lock``, and one on the folder, shared while
an index is opened and exclusive while a file is put in place. The folder's comes first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sessionquery.abort import AbortSignal

Stamp = tuple[int, int, int, int]
"""Inode, size, mtime and ctime (ns) of the main database file."""

_POLL_SECONDS: Final = 0.02
_WAIT_SECONDS: Final = 10.0


class UnusableIndexError(Exception):
    """The index file cannot be read or written here; an index in memory can serve instead."""


def inode_of(path: Path) -> int | None:
    """Return the inode of a file, None if there is none."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file, None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def size_of(path: Path) -> int:
    """Return the size of a file in bytes, 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def log_path(path: Path) -> Path:
    """Return where SQLite keeps the write-ahead log of a database."""
    return path.with_name(path.name + "-wal")


def lock_path(path: Path) -> Path:
    """Return the file that carries the writer lock and the note."""
    return path.with_name(path.name + ".lock")


def read_note(path: Path) -> Stamp | None:
    """Return how a writer left the main file, None if that is not known."""
    try:
        parts = lock_path(path).read_bytes().split()
    except FileNotFoundError:
        return None
    if len(parts) != 4 or not all(part.isdigit() for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2]), int(parts[3])


def write_note(path: Path) -> None:
    """Note how the main file is now; the caller holds the writer lock."""
    stamp = stamp_of(path)
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
        return os.open(lock_path(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UnusableIndexError(f"{lock_path(path)}: {error.strerror}") from error


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

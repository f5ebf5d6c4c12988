"""Which sessions a DSH process is writing to right now.

A writer holds ``flock(LOCK_EX)`` on ``session.lock``. Trying the lock would be the portable way to
find out, but even a moment's lock could stop a DSH from opening its session. So this only looks at
the kernel's list of locks, which Linux has (``/proc/locks``); elsewhere nothing is known.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dsh_memory.sessionquery.disk.discovery import FoundLog
from dsh_memory.sessionquery.disk.names import LOCK_NAME

_PROC_LOCKS: Final = Path("/proc/locks")


def locks_visible() -> bool:
    """Whether this system tells which sessions are being written to."""
    return sys.platform == "linux" and os.access(_PROC_LOCKS, os.R_OK)


def write_locked_inodes(table: str) -> frozenset[tuple[int, int, int]]:
    """Return ``(major, minor, inode)`` of each file in `table` with an exclusive ``flock``.

    `table` has the format of ``/proc/locks``; waiting requests (``->``) are no locks.
    """
    out: set[tuple[int, int, int]] = set()
    for line in table.splitlines():
        fields = line.split()
        if len(fields) < 6 or fields[1] != "FLOCK" or fields[3] != "WRITE":
            continue
        try:
            major, minor, inode = fields[5].split(":")
            out.add((int(major, 16), int(minor, 16), int(inode)))
        except ValueError:
            continue
    return frozenset(out)


def locked_logs(root: Path, logs: Iterable[FoundLog]) -> frozenset[tuple[str, str]]:
    """Return ``(project, directory)`` of each log whose session another process is writing to."""
    if not locks_visible():
        return frozenset()
    try:
        locked = write_locked_inodes(_PROC_LOCKS.read_text("ascii", "replace"))
    except OSError:
        return frozenset()
    if not locked:
        return frozenset()
    inodes = {inode for _, _, inode in locked}
    out: set[tuple[str, str]] = set()
    base = os.fspath(root)
    for found in logs:
        try:
            status = os.lstat(f"{base}/{found.project}/{found.directory}/{LOCK_NAME}")
        except OSError:
            continue
        if status.st_ino in inodes:
            key = (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)
            if key in locked:
                out.add((found.project, found.directory))
    return frozenset(out)

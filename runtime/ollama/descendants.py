"""Ending a service's whole process family. Standard library only: the guardian runs on it alone.

On Linux the caller is a *subreaper*: whatever the service leaves behind, in any process group or
session, becomes the caller's child and is found. Elsewhere the service's process group is all that
is known.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 2.0
MARK_VARIABLE = "MANAGED_BY"
_KILL_SECONDS = 5.0


def become_subreaper() -> None:
    """Let orphaned descendants become children of this process (Linux; elsewhere nothing)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when `parent`, which must be single-threaded, ends."""
    if _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
        os._exit(1)


def end_family(group: int | None) -> None:
    """End a process group and all descendants: SIGTERM, after two seconds SIGKILL.

    Without a group only the descendants that the system can name are ended.

    Returns when nothing is left, or when five seconds of SIGKILL did not help (a process in an
    uninterruptible wait).
    """
    _signal_all(group, signal.SIGTERM)
    if _wait_gone(group, GRACE_SECONDS, signal.SIGTERM):
        return
    _wait_gone(group, _KILL_SECONDS, signal.SIGKILL)


def end_marked(mark: str) -> None:
    """Kill every process of this user whose environment carries the mark (Linux).

    The last resort, for when guardian and keeper were both killed: the mark is inherited, so what
    is left is found wherever it went, and a number that was given to a new process is not.
    """
    if sys.platform != "linux":
        return
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        found = _marked(f"{MARK_VARIABLE}={mark}".encode())
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        time.sleep(0.03)


def reap() -> list[tuple[int, int]]:
    """Collect every child that has ended, as (pid, wait status)."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def _wait_gone(group: int | None, seconds: float, number: signal.Signals) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        reap()
        if not _left(group):
            return True
        if number is signal.SIGKILL:
            _signal_all(group, number)  # also what was born since
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.03)


def _left(group: int | None) -> bool:
    if sys.platform == "linux":
        return bool(_descendants())
    if group is None:
        return False
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # macOS says so of a group of zombies
    return True


def _signal_all(group: int | None, number: signal.Signals) -> None:
    if group is not None:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            pass
    for pid in _descendants():
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _descendants() -> list[int]:
    """Return all living descendants of this process; empty where there is no /proc."""
    if sys.platform != "linux":
        return []
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    pending = [os.getpid()]
    while pending:
        below = children.get(pending.pop(), [])
        found.extend(below)
        pending.extend(below)
    return found


def _marked(entry: bytes) -> list[int]:
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            environment = (process / "environ").read_bytes()  # empty for a zombie
        except OSError:
            continue
        if entry in environment.split(b"\0"):
            found.append(int(process.name))
    return found


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")
    return True

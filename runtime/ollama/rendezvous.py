"""Where the users of one managed service meet: a private directory with a socket and two locks.

The place depends on the user and on the service's address only, never on variables such as
``XDG_RUNTIME_DIR`` or ``TMPDIR``: agents start their servers with a bare environment, and those
must meet the commands of a terminal.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dsh_memory.runtime.ollama.errors import RUNTIME_DIRECTORY, OllamaError

# The shortest limit of a socket path, that of macOS, without the final NUL.
_SOCKET_PATH_BYTES = 103


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """The paths that belong to one service address.

    Attributes:
        socket: The guardian's Unix socket; exists only while a guardian takes leases.
        start_lock: Held (``flock``) by a user from the first look until the service is ready.
        life_lock: Held by the guardian and its keeper until everything they started is gone.
    """

    directory: Path
    socket: Path
    start_lock: Path
    life_lock: Path


def find(address: str, port: int) -> Rendezvous | None:
    """Return the meeting place if its directory exists; creates nothing."""
    for directory in _candidates():
        place = _place(directory, address, port)
        if _fits(place) and _is_private(directory):
            return place
    return None


def create(address: str, port: int) -> Rendezvous:
    """Return the meeting place, its directory made (mode 0700) when it is missing.

    Raises:
        OllamaError: ``OLLAMA_RUNTIME_DIRECTORY`` when no candidate can be used safely.
    """
    for directory in _candidates():
        place = _place(directory, address, port)
        if not _fits(place):
            continue
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            continue
        if _is_private(directory):
            return place
    tried = ", ".join(str(directory) for directory in _candidates())
    raise OllamaError(
        f"No directory for the service's socket can be made that only you can use (tried {tried}).",
        code=RUNTIME_DIRECTORY,
        hint="Make one of them writable; an existing one must belong to you with mode 0700.",
    )


def _candidates() -> Iterator[Path]:
    user = os.getuid()
    session = Path(f"/run/user/{user}")
    if session.is_dir():
        yield session / "dsh-memory"
    yield Path(f"/tmp/dsh-memory-{user}")
    temporary = Path(tempfile.gettempdir()) / f"dsh-memory-{user}"
    if temporary != Path(f"/tmp/dsh-memory-{user}"):
        yield temporary


def _place(directory: Path, address: str, port: int) -> Rendezvous:
    name = f"ollama-{'v6' if ':' in address else 'v4'}-{port}"
    return Rendezvous(
        directory=directory,
        socket=directory / f"{name}.sock",
        start_lock=directory / f"{name}.start",
        life_lock=directory / f"{name}.life",
    )


def _fits(place: Rendezvous) -> bool:
    return len(os.fsencode(place.socket)) <= _SOCKET_PATH_BYTES


def _is_private(directory: Path) -> bool:
    """Whether the directory is a real one, ours, and closed to others."""
    try:
        state = directory.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(state.st_mode)
        and state.st_uid == os.getuid()
        and not stat.S_IMODE(state.st_mode) & 0o077
    )

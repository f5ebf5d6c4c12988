"""A user's side of the guardian: starting one, taking a lease, giving it back."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from dsh_memory.runtime.ollama.descendants import MARK_VARIABLE, end_marked
from dsh_memory.runtime.ollama.errors import (
    RUNTIME_DIRECTORY,
    SERVICE_ENDED,
    START_FAILED,
    OllamaError,
    clip,
)
from dsh_memory.runtime.ollama.rendezvous import Rendezvous

_POLL_SECONDS = 0.05
# Longer than the guardian needs to end a service that resists: 2 s, then SIGKILL.
_STOP_SECONDS = 8.0
_ANSWER_SECONDS = 5.0
# A guardian that has left must not kill us where SIGPIPE has its default action.
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
_GOODBYES = frozenset({"kept", "stopped"})
_children: set[int] = set()


class Lease:
    """A share in a running service; while it is open, the service is kept running.

    Attributes:
        guardian: The guardian's process id.
        service: The service's process id, once it is known.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        place: Rendezvous,
        mark: str,
        guardian: int,
        child: bool,
        unread: bytes = b"",
    ) -> None:
        self.guardian = guardian
        self._place = place
        self._mark = mark
        self.service: int | None = None
        self._connection = connection
        self._child = child
        self._unread = unread
        self._end: OllamaError | None = None
        self._dismissed = False

    def check(self) -> None:
        """Take in the guardian's news without waiting.

        Raises:
            OllamaError: ``OLLAMA_START_FAILED`` or ``OLLAMA_SERVICE_ENDED``: the service is over.
        """
        while self._end is None:
            try:
                chunk = self._connection.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                chunk = b""
            self._take(chunk)
        raise self._end

    async def check_within(self, seconds: float) -> None:
        """As `check`, but give news that is just on its way a moment to arrive."""
        with anyio.move_on_after(seconds):
            while True:
                self.check()
                await anyio.wait_readable(self._connection)
        self.check()

    async def release(self) -> None:
        """Give the lease back and wait until the service is gone, or others keep it."""
        dismissed = False
        try:
            with contextlib.suppress(OSError):
                self._connection.send(b"release\n", _NO_SIGNAL)
                with anyio.move_on_after(_STOP_SECONDS):
                    await _message(self._connection, _GOODBYES, self._unread)
                    dismissed = True
        finally:
            self._connection.close()
        if not dismissed and not self._dismissed:
            # The guardian was killed. The keeper cleans up, unless it was killed as well.
            with contextlib.suppress(OllamaError):
                await _life_over(self._place)
            await anyio.to_thread.run_sync(end_marked, self._mark)
        if self._child:
            _children.add(self.guardian)
        for _ in range(20):
            # One that others keep running is collected at a later release, or by the system.
            if not _reap():
                return
            await anyio.sleep(_POLL_SECONDS / 5)

    def close(self) -> None:
        """Give the lease back without waiting; the guardian does the rest."""
        self._connection.close()

    def _take(self, chunk: bytes) -> None:
        if not chunk:
            self._end = OllamaError(
                "The guardian of the managed Ollama service is gone, and the service with it.",
                code=SERVICE_ENDED,
                hint="Run the command again, or restart the server, to start the service anew.",
            )
            return
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message["event"] in ("started", "serving"):
                self.service = message["service"]
            elif message["event"] in ("failed", "exited", "stopped"):
                self._end = _ending(message)
                self._dismissed = True
                return


async def join(place: Rendezvous) -> Lease | None:
    """Take a lease from the guardian that runs there; None if there is none.

    A guardian that is just ending is waited for.

    Raises:
        OllamaError: ``OLLAMA_START_FAILED`` when what an earlier guardian started does not end.
    """
    try:
        connection = _connect(place)
        try:
            connection.send(b"lease\n", _NO_SIGNAL)
            with anyio.fail_after(_ANSWER_SECONDS):
                message, rest = await _message(connection, {"serving"})
        except BaseException:
            connection.close()
            raise
    except OSError:  # nobody is there, or is closing the door right now; a time-out is one too
        await _life_over(place)
        return None
    lease = Lease(
        connection,
        place=place,
        mark=message["mark"],
        guardian=message["guardian"],
        child=False,
        unread=rest,
    )
    lease.service = message["service"]
    return lease


def start(place: Rendezvous, executable: str, environment: Mapping[str, str]) -> Lease:
    """Start a guardian that starts the service; its first lease is ours.

    The caller holds the start lock and knows that no other guardian lives (see `join`).

    Raises:
        OllamaError: ``OLLAMA_START_FAILED`` when the process cannot be made.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    program = Path(__file__).with_name("guardian.py")
    mark = f"dsh-memory-{secrets.token_hex(8)}"
    try:
        pid = os.posix_spawn(
            sys.executable,
            # Isolated and without site packages: nothing of the caller's directory or
            # environment is imported, and it is up in a few hundredths of a second.
            [
                sys.executable,
                "-I",
                "-S",
                str(program),
                str(place.socket),
                str(place.life_lock),
                executable,
            ],
            {**environment, MARK_VARIABLE: mark},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsigmask=[],
            setsigdef=[signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD],
        )
    except OSError as error:
        ours.close()
        raise OllamaError(
            f"The guardian process cannot be started: {error.strerror}.", code=START_FAILED
        ) from error
    finally:
        theirs.close()
    ours.setblocking(False)
    return Lease(ours, place=place, mark=mark, guardian=pid, child=True)


def status(place: Rendezvous) -> dict[str, Any] | None:
    """Ask the guardian there for its facts; None if none answers. Has no effect on it.

    Returns:
        ``guardian`` and ``service`` (process ids), ``leases``, ``started_at`` (Unix seconds).
    """
    try:
        connection = _connect(place)
    except OSError:
        return None
    with connection:
        connection.settimeout(1.0)
        try:
            connection.sendall(b"status\n")
            answer = b""
            while not answer.endswith(b"\n"):
                chunk = connection.recv(4096)
                if not chunk:
                    return None
                answer += chunk
        except OSError:
            return None
    facts: dict[str, Any] = json.loads(answer)
    return {name: facts[name] for name in ("guardian", "service", "leases", "started_at")}


def is_guarded(place: Rendezvous) -> bool:
    """Whether a service of ours runs there, or is just ending. Changes nothing.

    A guardian that ends its service has removed the socket already, while a service that resists
    still answers for seconds; only the life lock tells that it is ours and will be gone soon.
    """
    if place.socket.exists():
        return True
    try:
        descriptor = os.open(place.life_lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.asynccontextmanager
async def start_lock(place: Rendezvous) -> AsyncIterator[None]:
    """Serialize start-up among processes; the kernel frees the lock of one that is killed."""
    with _open_lock(place.start_lock) as descriptor:
        while not _try_lock(descriptor):  # noqa: ASYNC110 - other processes set no event
            await anyio.sleep(_POLL_SECONDS)
        yield


async def _life_over(place: Rendezvous) -> None:
    """Wait until everything that an earlier guardian started is gone."""
    with _open_lock(place.life_lock) as descriptor:
        deadline = time.monotonic() + _STOP_SECONDS
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise OllamaError(
                    "An earlier service of ours does not end "
                    f"(its lock {place.life_lock} is still held).",
                    code=START_FAILED,
                    hint="Look for a hanging ollama process and end it.",
                )
            await anyio.sleep(_POLL_SECONDS)
        mark = os.pread(descriptor, 200, 0).decode("ascii", "replace")
        if mark:
            # Guardian and keeper were both killed and could not end what they had started.
            await anyio.to_thread.run_sync(end_marked, mark)
            place.socket.unlink(missing_ok=True)
            os.ftruncate(descriptor, 0)


def _reap() -> bool:
    """Collect guardians of ours that have left; True while one of them has not."""
    for pid in tuple(_children):
        try:
            done, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            done = pid
        if done == pid:
            _children.discard(pid)
    return bool(_children)


@contextlib.contextmanager
def _open_lock(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise OllamaError(
            f"The lock {path} cannot be opened: {error.strerror}.", code=RUNTIME_DIRECTORY
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _connect(place: Rendezvous) -> socket.socket:
    """Connect without waiting; a Unix socket accepts or refuses at once."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(str(place.socket))
    except BaseException:
        connection.close()
        raise
    return connection


async def _message(
    connection: socket.socket, events: Set[str], unread: bytes = b""
) -> tuple[dict[str, Any], bytes]:
    """Wait for one of these events; others are passed over. Returns it and what came after."""
    while True:
        line, separator, rest = unread.partition(b"\n")
        if separator:
            unread = rest
            message: dict[str, Any] = json.loads(line)
            if message["event"] in events:
                return message, unread
            continue
        await anyio.wait_readable(connection)
        chunk = connection.recv(65536)
        if not chunk:
            raise ConnectionResetError("the guardian closed the connection")
        unread += chunk


def _ending(message: Mapping[str, Any]) -> OllamaError:
    if message["event"] == "failed":
        return OllamaError(
            f"Ollama could not be started: {clip(message['message'])}.",
            code=START_FAILED,
            hint="Check that `ollama serve` works in a terminal.",
        )
    if message["event"] == "stopped":
        return OllamaError(
            "The managed Ollama service was stopped from outside.",
            code=SERVICE_ENDED,
            hint="Run the command again, or restart the server, to start it anew.",
        )
    status = message["status"]
    how = f"with exit status {status}" if status >= 0 else f"by {_signal_name(-status)}"
    said = clip(message["stderr"].strip().splitlines()[-1] if message["stderr"].strip() else "")
    said = f": {said}" if said else " without a word"
    return OllamaError(
        f"The managed `ollama serve` ended by itself {how}{said}.",
        code=SERVICE_ENDED,
        hint="Check that `ollama serve` works in a terminal, then run the command again.",
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

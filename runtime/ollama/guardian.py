"""The guardian: a small process that owns the managed service on behalf of its users.

Users hold *leases*, connections to the guardian's Unix socket; the kernel closes a lease whatever
way its user ends. When the last one is closed the guardian has the service ended, and leaves.

It is run as a file by an isolated interpreter and needs the standard library only. Its standard
input is the first lease, a connected socket, so there is no moment without one.

Messages are JSON lines. A user says ``lease``, ``status`` or ``release``; the guardian answers
``{"event": …}`` with ``started``, ``serving``, ``status``, ``kept``, ``stopped``, ``failed`` or
``exited``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # The folder that holds `dsh_memory` comes last, behind the standard library.
    for _folder in Path(__file__).resolve().parents:
        if (_folder / "dsh_memory" / "__init__.py").is_file():
            sys.path.append(str(_folder))
            break

from dsh_memory.runtime.ollama.descendants import MARK_VARIABLE, become_subreaper, end_family

_LIFE_LOCK_SECONDS = 10.0
_LINE_BYTES = 64


class Guardian:
    """The event loop over leases and the keeper's reports.

    Args:
        place: The socket's path.
        executable: Absolute path of ``ollama``.
        first: The first lease.
        life: The locked descriptor of the life lock, which the keeper inherits.
    """

    def __init__(self, place: Path, executable: str, first: socket.socket, life: int) -> None:
        self._place = place
        self._executable = executable
        self._life = life
        self._leases: dict[socket.socket, bytes] = {first: b""}
        self._visitors: dict[socket.socket, bytes] = {}
        self._service: int | None = None
        self._keeper = 0
        self._orders = -1
        self._reports = -1
        self._unread = b""
        self._started_at = time.time()
        self._selector = selectors.DefaultSelector()

    def run(self, wake: int) -> None:
        """Serve until the last lease is closed, the service ends, or SIGTERM arrives."""
        # The socket exists before the service does: whoever finds the service answering also
        # finds the socket, and takes a lease instead of a stranger's server.
        listener = self._listen()
        self._start_keeper()
        entries: tuple[int | socket.socket, ...] = (listener, self._reports, wake, *self._leases)
        for entry in entries:
            self._selector.register(entry, selectors.EVENT_READ)
        try:
            while self._leases:
                for key, _ in self._selector.select():
                    if key.fileobj is listener:
                        self._welcome(listener)
                    elif key.fileobj == self._reports:
                        if not self._read_reports():
                            return
                    elif key.fileobj == wake:
                        if signal.SIGTERM in os.read(wake, 512):
                            return
                    elif isinstance(key.fileobj, socket.socket):
                        self._hear(key.fileobj)
        finally:
            self._close_door(listener)
            self._stop()

    def _listen(self) -> socket.socket:
        self._place.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(self._place))
        self._place.chmod(0o600)
        listener.listen(64)
        listener.setblocking(False)
        return listener

    def _start_keeper(self) -> None:
        orders, self._orders = os.pipe()
        self._reports, reports = os.pipe()
        kept = (orders, reports, self._life)
        for descriptor in kept:
            os.set_inheritable(descriptor, True)
        self._keeper = os.posix_spawn(
            sys.executable,
            [
                sys.executable,
                "-I",
                "-S",
                str(Path(__file__).with_name("keeper.py")),
                str(orders),
                str(reports),
                self._executable,
                str(self._place),
            ],
            os.environ,
        )
        os.set_inheritable(self._life, False)
        os.close(orders)
        os.close(reports)

    def _welcome(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionAbortedError):
            visitor, _ = listener.accept()
            visitor.setblocking(False)
            self._visitors[visitor] = b""
            self._selector.register(visitor, selectors.EVENT_READ)

    def _hear(self, peer: socket.socket) -> None:
        book = self._leases if peer in self._leases else self._visitors
        try:
            chunk = peer.recv(_LINE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        text = book[peer] + chunk
        if not chunk or len(text) > _LINE_BYTES:
            self._drop(peer)
            return
        *words, book[peer] = text.split(b"\n")
        for word in words:
            self._obey(peer, word)

    def _obey(self, peer: socket.socket, word: bytes) -> None:
        if word == b"lease" and peer in self._visitors:
            self._leases[peer] = self._visitors.pop(peer)
            self._say(peer, self._facts("serving"))
        elif word == b"status":
            self._say(peer, self._facts("status"))
        elif word == b"release" and peer in self._leases:
            if len(self._leases) > 1:
                self._say(peer, {"event": "kept"})
                self._drop(peer)
            else:
                # Kept open to say when everything has gone.
                self._visitors[peer] = self._leases.pop(peer)
        else:
            self._drop(peer)

    def _drop(self, peer: socket.socket) -> None:
        self._leases.pop(peer, None)
        self._visitors.pop(peer, None)
        self._selector.unregister(peer)
        peer.close()

    def _read_reports(self) -> bool:
        """Pass the keeper's news on; False when the service is over."""
        chunk = os.read(self._reports, 65536)
        if not chunk:
            return False
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            report = json.loads(line)
            if report["event"] == "started":
                self._service = report["pid"]
                for peer in self._leases:
                    self._say(peer, self._facts("started"))
            else:
                for peer in self._leases:
                    self._say(peer, report)
                return False
        return True

    def _facts(self, event: str) -> dict[str, Any]:
        return {
            "event": event,
            "guardian": os.getpid(),
            "service": self._service,
            "leases": len(self._leases),
            "started_at": self._started_at,
            "mark": os.environ[MARK_VARIABLE],
        }

    def _say(self, peer: socket.socket, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            peer.sendall(json.dumps(message).encode() + b"\n")

    def _close_door(self, listener: socket.socket) -> None:
        # The name goes first: from here on a new user finds nothing and waits for the life lock.
        self._place.unlink(missing_ok=True)
        listener.close()

    def _stop(self) -> None:
        os.close(self._orders)
        while os.read(self._reports, 65536):
            pass  # until the keeper is gone
        _, status = os.waitpid(self._keeper, 0)
        if status != 0:
            # The keeper was killed before its work was done; its family has come to us.
            end_family(self._service)
        for peer in (*self._visitors, *self._leases):
            self._say(peer, {"event": "stopped"})


@contextlib.contextmanager
def _life_lock(path: Path) -> Iterator[int]:
    """Hold the lock that says that something of ours may still be running.

    The keeper inherits it, so it outlasts a guardian that is killed. While the lock is held the
    file names the service's mark; it is emptied when all is gone, so a mark in a file that nobody
    locks tells of processes that may have been left behind.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + _LIFE_LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, os.environ[MARK_VARIABLE].encode(), 0)
    yield descriptor
    os.ftruncate(descriptor, 0)


def main() -> None:
    """Run a guardian: ``guardian.py SOCKET LIFE_LOCK EXECUTABLE``, first lease on descriptor 0."""
    place, lock, executable = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    with contextlib.suppress(PermissionError):
        os.setsid()
    os.chdir("/")
    os.umask(0o077)
    first = socket.socket(fileno=os.dup(0))
    first.setblocking(False)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    keep_open = {0, 1, 2, first.fileno()}
    for descriptor in range(3, 256):
        if descriptor not in keep_open:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    try:
        become_subreaper()
        with _life_lock(lock) as life:
            Guardian(place, executable, first, life).run(wake_read)
    except Exception as error:  # noqa: BLE001 - nobody else could report it
        message = {"event": "failed", "message": f"guardian: {error!r}"}
        with contextlib.suppress(OSError):
            first.sendall(json.dumps(message).encode() + b"\n")
    os._exit(0)


if __name__ == "__main__":
    main()

"""The service's parent: it starts ``ollama serve`` and ends its family when the guardian is gone.

It is a process of its own, so that even a guardian that is killed leaves nothing running: it holds
one end of a pipe, and the pipe's end of file is its order to stop. It also holds the life lock,
inherited from the guardian, until everything is gone. Run as a file by an isolated interpreter;
standard library only.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

if __name__ == "__main__":
    # The folder that holds `dsh_memory` comes last, behind the standard library.
    for _folder in Path(__file__).resolve().parents:
        if (_folder / "dsh_memory" / "__init__.py").is_file():
            sys.path.append(str(_folder))
            break

from dsh_memory.runtime.ollama.descendants import (
    become_subreaper,
    die_with_parent,
    end_family,
    reap,
)

_TAIL_BYTES = 2000


def keep(*, orders: int, reports: int, executable: str, socket_path: Path) -> NoReturn:
    """Run the service until the pipe `orders` closes or the service ends by itself; then exit.

    Writes JSON lines to the pipe `reports`: ``{"event": "started", "pid"}``, then at most one of
    ``{"event": "failed", "message"}`` and ``{"event": "exited", "status", "stderr"}``.
    """
    os.setsid()
    os.umask(0o077)
    become_subreaper()
    wake_read, wake_write = os.pipe()
    for descriptor in (wake_read, wake_write):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    # Handlers and not SIG_IGN: an ignored signal would stay ignored in the service.
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    me = os.getpid()
    try:
        service = subprocess.Popen(
            [executable, "serve"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
            # This process has one thread, so running code between fork and exec is safe.
            preexec_fn=_tie_to(me),
        )
    except (OSError, subprocess.SubprocessError) as error:
        _report(reports, {"event": "failed", "message": f"{executable}: {error}"})
        _leave(socket_path)
    _report(reports, {"event": "started", "pid": service.pid})
    assert service.stderr is not None
    ended = _watch(service.pid, orders, service.stderr.fileno(), wake_read)
    if ended is not None:
        _report(reports, {"event": "exited", **ended})
    end_family(service.pid)
    _leave(socket_path)


def _tie_to(parent: int) -> Callable[[], None]:
    def tie() -> None:
        die_with_parent(parent)

    return tie


def _watch(service: int, orders: int, stderr: int, wake: int) -> dict[str, Any] | None:
    """Wait for the order to stop (None) or the service's own end (its exit status, stderr)."""
    os.set_blocking(stderr, False)
    tail = b""
    with selectors.DefaultSelector() as selector:
        for descriptor in (orders, stderr, wake):
            selector.register(descriptor, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if orders in ready:
                return None
            if stderr in ready:
                chunk = os.read(stderr, 65536)
                if not chunk:
                    selector.unregister(stderr)
                tail = (tail + chunk)[-_TAIL_BYTES:]
            if wake in ready:
                os.read(wake, 512)
                for pid, status in reap():
                    if pid == service:
                        tail = (tail + _rest(stderr))[-_TAIL_BYTES:]
                        return {
                            "status": os.waitstatus_to_exitcode(status),
                            "stderr": tail.decode("utf-8", "replace"),
                        }


def _rest(stderr: int) -> bytes:
    try:
        return os.read(stderr, 65536)
    except BlockingIOError:
        return b""


def _report(reports: int, event: Mapping[str, Any]) -> None:
    try:
        os.write(reports, json.dumps(event).encode() + b"\n")
    except BrokenPipeError:
        pass  # the guardian is gone; the order to stop is already here


def _leave(socket_path: Path) -> NoReturn:
    # A guardian that was killed could not remove its socket.
    socket_path.unlink(missing_ok=True)
    os._exit(0)


if __name__ == "__main__":
    keep(
        orders=int(sys.argv[1]),
        reports=int(sys.argv[2]),
        executable=sys.argv[3],
        socket_path=Path(sys.argv[4]),
    )

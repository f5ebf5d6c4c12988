"""An HTTP server on 127.0.0.1 that runs until its caller is cancelled; the two web sides share it.

It listens on loopback and on nothing else, leaves signals to the command line, and tells nobody
which software it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Final

import anyio
import uvicorn
from dsh_memory.runtime.errors import DshMemoryError
from starlette.types import ASGIApp

_GRACE_SECONDS: Final = 1
"""How long an answer that is under way may take when the server is told to stop."""


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers; the command line has one place for signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(port: int, *, code: str) -> socket.socket:
    """Return a listening socket on 127.0.0.1.

    Args:
        port: The port; 0 for a free one.
        code: The code of the error.

    Raises:
        DshMemoryError: The port cannot be bound.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise DshMemoryError(
            f"Port {port} of 127.0.0.1 cannot be used: {error.strerror or error}.",
            code=code,
            hint="Leave --port out for a free one, or name another.",
        ) from error
    return listener


async def serve(app: ASGIApp, listener: socket.socket, *, ready: Callable[[], None]) -> None:
    """Serve `app` until the caller cancels, then let running answers finish for a second.

    Args:
        app: Sees requests as they come; who may ask what is its business.
        listener: A socket of `listen`.
        ready: Called once when requests are accepted.
    """
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        http="h11",
        log_config=None,
        # Failures only: what strangers send to the port is not worth a line.
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = _Server(config)
    running = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        ready()
        await asyncio.shield(running)
    finally:
        # Answers that are cut off now are no failures either.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        server.should_exit = True
        with anyio.CancelScope(shield=True):
            await running

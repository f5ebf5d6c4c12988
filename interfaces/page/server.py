"""Running the page: bound to loopback, until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import anyio
import uvicorn

from interfaces.page.app import build_app
from interfaces.page.form import Source
from interfaces.page.security import Gate
from runtime.errors import DshMemoryError

_GRACE_SECONDS = 1
"""How long an answer that is under way may take when the server is told to stop."""


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers; the command line has one place for signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(source: Source, *, port: int = 0, ready: Callable[[str], None]) -> None:
    """Serve the page until the caller cancels, then let running answers finish for a second.

    Args:
        source: The configuration to edit.
        port: The port on 127.0.0.1; 0 for a free one.
        ready: Called once with the address, one-time token included, when the port is open.

    Raises:
        DshMemoryError: ``PAGE_PORT`` when the port cannot be bound.
    """
    with _listen(port) as listener:
        gate = Gate(port=listener.getsockname()[1])
        config = uvicorn.Config(
            build_app(source, gate),
            lifespan="off",
            ws="none",
            http="h11",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        server = _Server(config)
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            ready(gate.url)
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            with anyio.CancelScope(shield=True):
                await serving


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise DshMemoryError(
            f"Port {port} of 127.0.0.1 cannot be used: {error.strerror or error}.",
            code="PAGE_PORT",
            hint="Leave --port out for a free one, or name another.",
        ) from error
    return listener

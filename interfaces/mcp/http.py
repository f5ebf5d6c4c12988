"""Streamable HTTP on loopback, for clients that cannot start a process or want to share one."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

import anyio
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from interfaces.mcp.http_guard import PATH, Guard
from runtime.errors import DshMemoryError

SESSIONS: Final = 1000
"""How many sessions clients may hold at once; forgotten ones end after half an hour."""
_GRACE_SECONDS: Final = 1


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers; the command line has one place for signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_http(
    server: Server[Any], *, port: int, token: str, ready: Callable[[str], None]
) -> None:
    """Serve `server` on 127.0.0.1 until the caller cancels.

    Args:
        port: The port; 0 for a free one.
        token: The bearer token that every request must carry.
        ready: Called once with the address when the port is open.

    Raises:
        DshMemoryError: ``MCP_PORT`` when the port cannot be bound.
    """
    with _listen(port) as listener:
        own_port = listener.getsockname()[1]
        manager = StreamableHTTPSessionManager(server, max_sessions=SESSIONS)
        config = uvicorn.Config(
            Guard(manager.handle_request, port=own_port, token=token),
            lifespan="off",
            ws="none",
            http="h11",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        web = _Server(config)
        async with manager.run():
            serving = asyncio.ensure_future(web.serve(sockets=[listener]))
            try:
                ready(f"http://127.0.0.1:{own_port}{PATH}")
                await asyncio.shield(serving)
            finally:
                web.should_exit = True
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
            code="MCP_PORT",
            hint="Leave --port out for a free one, or name another.",
        ) from error
    return listener

"""Streamable HTTP on loopback, for clients that cannot start a process or want to share one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dsh_memory.interfaces import loopback_http
from dsh_memory.interfaces.mcp.http_guard import PATH, Guard
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

SESSIONS: Final = 1000
"""How many sessions clients may hold at once; forgotten ones end after half an hour."""


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
    with loopback_http.listen(port, code="MCP_PORT") as listener:
        own_port = listener.getsockname()[1]
        manager = StreamableHTTPSessionManager(server, max_sessions=SESSIONS)
        guard = Guard(manager.handle_request, port=own_port, token=token)
        async with manager.run():
            await loopback_http.serve(
                guard, listener, ready=lambda: ready(f"http://127.0.0.1:{own_port}{PATH}")
            )

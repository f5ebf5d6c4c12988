"""Running the page: bound to loopback, until it is cancelled."""

from __future__ import annotations

from collections.abc import Callable

from dsh_memory.interfaces import loopback_http
from dsh_memory.interfaces.page.app import build_app
from dsh_memory.interfaces.page.form import Source
from dsh_memory.interfaces.page.security import Gate


async def serve(source: Source, *, port: int = 0, ready: Callable[[str], None]) -> None:
    """Serve the page until the caller cancels.

    Args:
        source: The configuration to edit.
        port: The port on 127.0.0.1; 0 for a free one.
        ready: Called once with the address, one-time token included, when the port is open.

    Raises:
        DshMemoryError: ``PAGE_PORT`` when the port cannot be bound.
    """
    with loopback_http.listen(port, code="PAGE_PORT") as listener:
        gate = Gate(port=listener.getsockname()[1])
        app = build_app(source, gate)
        await loopback_http.serve(app, listener, ready=lambda: ready(gate.url))

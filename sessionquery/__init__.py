"""Reads, traces and searches the session store of a DeepSeek Harness home.

    async with SessionQueryEngine(EngineOptions(home="/home/me/.dsh")) as engine:
        page = await engine.search_sessions("connection pool")

Names are loaded when they are first used, so that importing a part costs only that part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsh_memory.sessionquery.abort import AbortSignal
    from dsh_memory.sessionquery.engine import SessionQueryEngine
    from dsh_memory.sessionquery.errors import SessionQueryError
    from dsh_memory.sessionquery.live import LiveSession, LiveSessions
    from dsh_memory.sessionquery.model.options import EngineOptions
    from dsh_memory.sessionquery.model.sessions import SessionHeader
    from dsh_memory.sessionquery.model.wire import to_wire

__all__ = [
    "AbortSignal",
    "EngineOptions",
    "LiveSession",
    "LiveSessions",
    "SessionHeader",
    "SessionQueryEngine",
    "SessionQueryError",
    "to_wire",
]

_MODULES = {
    "AbortSignal": "abort",
    "EngineOptions": "model.options",
    "LiveSession": "live",
    "LiveSessions": "live",
    "SessionHeader": "model.sessions",
    "SessionQueryEngine": "engine",
    "SessionQueryError": "errors",
    "to_wire": "model.wire",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

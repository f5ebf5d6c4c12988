"""Reads, traces and searches the session store of a DeepSeek Harness home.

    async with SessionQueryEngine(EngineOptions(home="/home/me/.dsh")) as engine:
        page = await engine.search_sessions("connection pool")

Names are loaded when they are first used, so that importing a part costs only that part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessionquery.abort import AbortSignal
    from sessionquery.engine import SessionQueryEngine
    from sessionquery.errors import SessionQueryError
    from sessionquery.live import LiveSession, LiveSessions
    from sessionquery.model import EngineOptions, SessionHeader
    from sessionquery.wire import to_wire

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
    "EngineOptions": "model",
    "LiveSession": "live",
    "LiveSessions": "live",
    "SessionHeader": "model",
    "SessionQueryEngine": "engine",
    "SessionQueryError": "errors",
    "to_wire": "wire",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

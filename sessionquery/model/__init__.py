"""What the engine answers with and is opened with: frozen records and their JSON form; no rule.

Names are loaded on first use: a search needs none of the records of exact reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsh_memory.sessionquery.model.options import EngineOptions
    from dsh_memory.sessionquery.model.reads import (
        EventDocument,
        EventRecord,
        EventTrace,
        EventWindow,
        LineageNode,
        Observation,
        SessionLog,
        SessionTitle,
        SessionTrace,
        SurfaceView,
        TitleResult,
        TitleSnapshot,
    )
    from dsh_memory.sessionquery.model.search import (
        EventHit,
        EventPage,
        SessionHit,
        SessionPage,
        UnreadableSession,
    )
    from dsh_memory.sessionquery.model.sessions import Event, SessionHeader, SessionRecord, Surface

__all__ = [
    "EngineOptions",
    "Event",
    "EventDocument",
    "EventHit",
    "EventPage",
    "EventRecord",
    "EventTrace",
    "EventWindow",
    "LineageNode",
    "Observation",
    "SessionHeader",
    "SessionHit",
    "SessionLog",
    "SessionPage",
    "SessionRecord",
    "SessionTitle",
    "SessionTrace",
    "Surface",
    "SurfaceView",
    "TitleResult",
    "TitleSnapshot",
    "UnreadableSession",
]

_MODULES = {
    "EngineOptions": "options",
    "Event": "sessions",
    "EventDocument": "reads",
    "EventHit": "search",
    "EventPage": "search",
    "EventRecord": "reads",
    "EventTrace": "reads",
    "EventWindow": "reads",
    "LineageNode": "reads",
    "Observation": "reads",
    "SessionHeader": "sessions",
    "SessionHit": "search",
    "SessionLog": "reads",
    "SessionPage": "search",
    "SessionRecord": "sessions",
    "SessionTitle": "reads",
    "SessionTrace": "reads",
    "Surface": "sessions",
    "SurfaceView": "reads",
    "TitleResult": "reads",
    "TitleSnapshot": "reads",
    "UnreadableSession": "search",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

"""What the engine answers with: frozen records, in document 002's terms in snake_case.

Times are integers, milliseconds since the Unix epoch. `seq` is the zero-based event number in a
session. Absent optional values are None here and left out of the JSON form (`sessionquery.wire`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from sessionquery.readmodel import (
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

Surface = Literal["current", "shadowed", "log-only"]
Event = dict[str, Any]
"""One log event as JSON: ``type, seq, time, data`` and optionally ``surfaceOp, sourceEventSeqs
(unpacked), ignorable``."""


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """The immutable first line of a session log, always in generation-4 form.

    `delegation_depth` is None only for live sessions that an embedding program made without one.
    """

    id: str
    created_at: int
    is_seeded: bool
    delegation_depth: int | None
    cwd: str | None = None
    parent_session: str | None = None
    origin: str | None = None
    agent_preset: str | None = None
    version: int = 4

    @property
    def is_main(self) -> bool:
        """Whether this is a main session (document 000), neither spawned nor forked as subagent."""
        return self.origin != "subagent" and (self.delegation_depth or 0) <= 0


@dataclass(frozen=True, slots=True)
class SessionRecord:
    header: SessionHeader
    live: bool
    persisted: bool
    format_status: Literal["current", "migration-required"] = "current"


@dataclass(frozen=True, slots=True)
class EventHit:
    """A search match; `snippet` has at most ``snippet_chars`` code points.

    `tools` names the tools that the event calls (``tool/call``, ``tool/result``: the one tool; an
    assistant message that is nothing but tool calls: all of them), else it is empty. It is not
    part of the wire form.
    """

    session_id: str
    seq: int
    type: str
    time: int
    surface: Surface
    snippet: str
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A session with its strongest matching event; its header has no `origin`."""

    header: SessionHeader
    live: bool
    persisted: bool
    best_match: EventHit


@dataclass(frozen=True, slots=True)
class UnreadableSession:
    """A session that was left out because ``store.unreadable`` is ``skip``."""

    path: str
    code: str
    reason: str
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class SessionPage:
    items: tuple[SessionHit, ...]
    next_cursor: str | None = None
    unreadable_sessions: tuple[UnreadableSession, ...] = ()
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventPage:
    session: SessionHeader
    items: tuple[EventHit, ...]
    next_cursor: str | None = None
    unreadable_sessions: tuple[UnreadableSession, ...] = ()
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Settings of the engine (document 002, "configuration"; defaults of ours where they differ).

    Attributes:
        home: The DSH home; logs are below ``home/sessions``.
        index_path: None for the home's file in the user cache, ``":memory:"``, or a path.
        open_at: When the index is opened: ``startup``, ``first-search`` or ``never`` (search off).
        snippet_chars: Snippet length in code points.
        read_window_max: Largest ``before``/``after`` of `read_event`, in events.
        inspect_concurrency: How many logs one batch read opens at once.
        unreadable: ``fail`` (as the original) or ``skip`` (left out and named in the result).
    """

    home: str
    index_path: str | None = None
    open_at: Literal["startup", "first-search", "never"] = "first-search"
    default_limit: int = 20
    max_limit: int = 100
    snippet_chars: int = 240
    read_window_max: int = 50
    inspect_concurrency: int = 4
    unreadable: Literal["fail", "skip"] = "fail"


def __getattr__(name: str) -> object:
    # The records of exact reads are loaded on first use; a search needs none of them.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sessionquery import readmodel

    return getattr(readmodel, name)

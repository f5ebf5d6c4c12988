"""What a search answers with: hits and pages."""

from __future__ import annotations

from dataclasses import dataclass

from dsh_memory.sessionquery.model.sessions import SessionHeader, Surface


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

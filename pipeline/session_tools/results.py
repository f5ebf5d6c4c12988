"""The results of document 002's five tools: closed models, absent optional fields absent."""

from __future__ import annotations

from typing import Any, Literal

from dsh_memory.pipeline.shared.closed_models import Closed, UnreadableSessionReport

Availability = Literal["live", "persisted"]


class SessionReference(Closed):
    """A session by id, with its title if it has one that could be read."""

    session_id: str
    title: str | None = None


class EventReference(Closed):
    """An event by number."""

    seq: int
    type: str
    time: int
    surface: str


class EventMatch(EventReference):
    """A matching event."""

    snippet: str


class SessionMatch(SessionReference):
    """A session with its strongest matching event."""

    created_at: int
    parent_session_id: str | None
    availability: tuple[Availability, ...]
    best_match: EventMatch


class SessionSearchAnswer(Closed):
    """``session_search``. `truncated`: there are more matches than the most that are collected."""

    source: Literal["dsh"]
    query: str
    results: tuple[SessionMatch, ...]
    truncated: bool
    diagnostics: tuple[str, ...] | None = None
    unreadable_sessions: tuple[UnreadableSessionReport, ...] | None = None


class EventSearchAnswer(Closed):
    """``session_event_search``."""

    source: Literal["dsh"]
    query: str
    session: SessionReference
    results: tuple[EventMatch, ...]
    truncated: bool
    diagnostics: tuple[str, ...] | None = None
    unreadable_sessions: tuple[UnreadableSessionReport, ...] | None = None


class LineageSession(SessionReference):
    """A session in a lineage."""

    created_at: int
    availability: tuple[Availability, ...]


class Descendant(LineageSession):
    """A descendant with its own ones."""

    descendants: tuple[Descendant, ...]


class SessionTraceAnswer(Closed):
    """``session_trace``: what the caller may see of the lineage.

    `complete` is false when an ancestor is missing or not visible; `ancestors` then ends before it.
    """

    source: Literal["dsh"]
    session: LineageSession
    ancestors: tuple[LineageSession, ...]
    descendants: tuple[Descendant, ...]
    complete: bool


class EventTraceAnswer(Closed):
    """``session_event_trace``; all lists hold event numbers of the same session."""

    source: Literal["dsh"]
    session: SessionReference
    target: EventReference
    replaced_by: int | None
    replacement_chain: tuple[int, ...]
    replaced_event_seqs: tuple[int, ...]
    source_event_seqs: tuple[int, ...]
    derived_event_seqs: tuple[int, ...]


class Neighbour(Closed):
    """An event beside the target, its searchable text cut short."""

    seq: int
    type: str
    time: int
    text: str
    text_truncated: bool


class EventReadAnswer(Closed):
    """``session_event_read``: the target as it was recorded, its neighbours in short."""

    source: Literal["dsh"]
    session: SessionReference
    inherited_event_count: int
    target: dict[str, Any]
    before: tuple[Neighbour, ...]
    after: tuple[Neighbour, ...]

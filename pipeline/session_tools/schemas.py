"""Parameter schemas of document 002's five tools and of document 004's ``recall``."""

from __future__ import annotations

from typing import Final

from dsh_memory.pipeline.session_tools.requests import TYPE_UNITS, WINDOW_MAXIMUM
from dsh_memory.pipeline.shared.json_schema import (
    QUERY,
    Schema,
    choices,
    closed,
    integer,
    optional,
    text,
    texts,
)
from dsh_memory.pipeline.shared.request_fields import QUERY_UNITS, SESSION_ID_UNITS

_TARGET: Final = "Target session; omitted: the caller's own."
_FROM: Final = "Inclusive ISO 8601 time with Z or offset."


def session_search_parameters() -> Schema:
    """The parameters of ``session_search``."""
    return closed(
        ["query"],
        query=text(QUERY, QUERY_UNITS),
        session_ids=texts("Only these sessions.", SESSION_ID_UNITS),
        created_at_from=_moment(),
        created_at_to=_moment(),
        parent_session_ids=texts("Only children of these sessions.", SESSION_ID_UNITS),
        include_root_sessions=optional(
            {"type": "boolean", "description": "Also sessions without a parent."}
        ),
        availability=choices("Any of these.", "live", "persisted"),
        event_seq_from=_seq(),
        event_seq_to=_seq(),
        event_time_from=_moment(),
        event_time_to=_moment(),
        event_types=texts("Only these event types.", TYPE_UNITS),
        event_surfaces=_surfaces(),
    )


def event_search_parameters() -> Schema:
    """The parameters of ``session_event_search``."""
    return closed(
        ["query"],
        session_id=optional(text(_TARGET, SESSION_ID_UNITS)),
        query=text(QUERY, QUERY_UNITS),
        seq_from=_seq(),
        seq_to=_seq(),
        time_from=_moment(),
        time_to=_moment(),
        event_types=texts("Only these event types.", TYPE_UNITS),
        surfaces=_surfaces(),
    )


def session_trace_parameters() -> Schema:
    """The parameters of ``session_trace``."""
    return closed([], session_id=optional(text(_TARGET, SESSION_ID_UNITS)))


def event_trace_parameters() -> Schema:
    """The parameters of ``session_event_trace``."""
    return closed(
        ["seq"],
        session_id=optional(text(_TARGET, SESSION_ID_UNITS)),
        seq=integer("Event number.", 0),
    )


def event_read_parameters() -> Schema:
    """The parameters of ``session_event_read``."""
    return closed(
        ["seq"],
        session_id=optional(text(_TARGET, SESSION_ID_UNITS)),
        seq=integer("Event number.", 0),
        before=optional(integer("Events before it, in short.", 0, WINDOW_MAXIMUM, 0)),
        after=optional(integer("Events after it, in short.", 0, WINDOW_MAXIMUM, 0)),
    )


def _seq() -> Schema:
    return optional(integer("Inclusive event number.", 0))


def _moment() -> Schema:
    return optional({"type": "string", "description": _FROM})


def _surfaces() -> Schema:
    return choices("Any of these.", "current", "shadowed", "log-only")

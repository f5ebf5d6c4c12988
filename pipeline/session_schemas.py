"""Parameter schemas of document 002's five tools and of document 004's ``recall``."""

from __future__ import annotations

from typing import Any, Final

from pipeline.requests import CURSOR_UNITS, QUERY_UNITS, SESSION_ID_UNITS
from pipeline.session_requests import LIST_MAXIMUM, TYPE_UNITS, WINDOW_MAXIMUM

Schema = dict[str, Any]
_TARGET: Final = "Target session; omitted: the caller's own."
_QUERY: Final = "Literal word or phrase: tokens, no substrings, no operators."
_FROM: Final = "Inclusive ISO 8601 time with Z or offset."


def session_search_parameters() -> Schema:
    """The parameters of ``session_search``."""
    return _closed(
        ["query"],
        query=_text(_QUERY, QUERY_UNITS),
        session_ids=_texts("Only these sessions.", SESSION_ID_UNITS),
        created_at_from=_moment(),
        created_at_to=_moment(),
        parent_session_ids=_texts("Only children of these sessions.", SESSION_ID_UNITS),
        include_root_sessions=_optional(
            {"type": "boolean", "description": "Also sessions without a parent."}
        ),
        availability=_choices("Any of these.", "live", "persisted"),
        event_seq_from=_seq(),
        event_seq_to=_seq(),
        event_time_from=_moment(),
        event_time_to=_moment(),
        event_types=_texts("Only these event types.", TYPE_UNITS),
        event_surfaces=_surfaces(),
    )


def event_search_parameters() -> Schema:
    """The parameters of ``session_event_search``."""
    return _closed(
        ["query"],
        session_id=_optional(_text(_TARGET, SESSION_ID_UNITS)),
        query=_text(_QUERY, QUERY_UNITS),
        seq_from=_seq(),
        seq_to=_seq(),
        time_from=_moment(),
        time_to=_moment(),
        event_types=_texts("Only these event types.", TYPE_UNITS),
        surfaces=_surfaces(),
    )


def session_trace_parameters() -> Schema:
    """The parameters of ``session_trace``."""
    return _closed([], session_id=_optional(_text(_TARGET, SESSION_ID_UNITS)))


def event_trace_parameters() -> Schema:
    """The parameters of ``session_event_trace``."""
    return _closed(
        ["seq"],
        session_id=_optional(_text(_TARGET, SESSION_ID_UNITS)),
        seq=_integer("Event number.", 0),
    )


def event_read_parameters() -> Schema:
    """The parameters of ``session_event_read``."""
    return _closed(
        ["seq"],
        session_id=_optional(_text(_TARGET, SESSION_ID_UNITS)),
        seq=_integer("Event number.", 0),
        before=_optional(_integer("Events before it, in short.", 0, WINDOW_MAXIMUM, 0)),
        after=_optional(_integer("Events after it, in short.", 0, WINDOW_MAXIMUM, 0)),
    )


def recall_parameters(*, max_limit: int, since_days_maximum: int) -> Schema:
    """The parameters of ``recall``."""
    return _closed(
        ["query"],
        query=_text(_QUERY, QUERY_UNITS),
        all_projects=_optional(
            {"type": "boolean", "description": "Every project, not only the caller's directory."}
        ),
        session_id=_optional(_text("Only the events of this session.", SESSION_ID_UNITS)),
        since_days=_optional(_integer("Only events of the last days.", 1, since_days_maximum)),
        limit=_optional(_integer("Page size; normally 1 to 10.", 1, max_limit)),
        cursor=_optional(_text("next_cursor of the previous page; repeat the rest.", CURSOR_UNITS)),
    )


def _seq() -> Schema:
    return _optional(_integer("Inclusive event number.", 0))


def _moment() -> Schema:
    return _optional({"type": "string", "description": _FROM})


def _surfaces() -> Schema:
    return _choices("Any of these.", "current", "shadowed", "log-only")


def _choices(description: str, *values: str) -> Schema:
    items = {"type": "string", "enum": list(values)}
    return _optional({"type": "array", "minItems": 1, "items": items, "description": description})


def _texts(description: str, units: int) -> Schema:
    return _optional(
        {
            "type": "array",
            "minItems": 1,
            "maxItems": LIST_MAXIMUM,
            "items": {"type": "string", "maxLength": units},
            "description": description,
        }
    )


def _text(description: str, units: int) -> Schema:
    return {"type": "string", "maxLength": units, "description": description}


def _integer(
    description: str, low: int, high: int | None = None, default: int | None = None
) -> Schema:
    schema: Schema = {"type": "integer", "minimum": low}
    if high is not None:
        schema["maximum"] = high
    if default is not None:
        schema["default"] = default
    return {**schema, "description": description}


def _optional(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _closed(required: list[str], **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }

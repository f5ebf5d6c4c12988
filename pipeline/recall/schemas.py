"""The JSON schema of recall's parameters, as agents see it."""

from __future__ import annotations

from dsh_memory.pipeline.shared.json_schema import QUERY, Schema, closed, integer, optional, text
from dsh_memory.pipeline.shared.request_fields import CURSOR_UNITS, QUERY_UNITS, SESSION_ID_UNITS


def recall_parameters(*, max_limit: int, since_days_maximum: int) -> Schema:
    """The parameters of ``recall``."""
    return closed(
        ["query"],
        query=text(QUERY, QUERY_UNITS),
        all_projects=optional(
            {"type": "boolean", "description": "Every project, not only the caller's directory."}
        ),
        session_id=optional(text("Only the events of this session.", SESSION_ID_UNITS)),
        since_days=optional(integer("Only events of the last days.", 1, since_days_maximum)),
        limit=optional(integer("Page size; normally 1 to 10.", 1, max_limit)),
        cursor=optional(text("next_cursor of the previous page; repeat the rest.", CURSOR_UNITS)),
    )

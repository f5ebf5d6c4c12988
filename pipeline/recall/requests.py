"""Requests and results of ``recall`` (document 004)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from dsh_memory.pipeline.shared.closed_models import Closed, UnreadableSessionReport
from dsh_memory.pipeline.shared.errors import RequestError, shown
from dsh_memory.pipeline.shared.request_fields import (
    CURSOR_UNITS,
    QUERY_UNITS,
    SESSION_ID_UNITS,
    Request,
    checked,
    integer,
    known_fields,
    refusal,
    text,
)
from dsh_memory.runtime.config.settings import RecallSettings
from dsh_memory.sessionquery.js.text import collapse_blanks, is_safe_integer
from pydantic import BeforeValidator, ValidationInfo

SINCE_DAYS_MAXIMUM: Final = 36500
HINT: Final = "recall takes query, all_projects, session_id, since_days, limit and cursor."


def _flag(value: object, info: ValidationInfo) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise refusal(f"{info.field_name} must be true or false, not {shown(value)}.")
    return value


class RecallRequest(Request):
    """One page of recall; `limit` is None for the configured default."""

    query: Annotated[str, BeforeValidator(collapse_blanks), text(QUERY_UNITS)]
    all_projects: Annotated[bool, BeforeValidator(_flag)] = False
    session_id: Annotated[str, text(SESSION_ID_UNITS)] | None = None
    since_days: Annotated[int, integer(1, SINCE_DAYS_MAXIMUM)] | None = None
    limit: int | None = None
    cursor: Annotated[str, text(CURSOR_UNITS)] | None = None


def parse_recall(value: object, settings: RecallSettings) -> RecallRequest:
    """Check a recall request of any JSON type against the configured largest page.

    Raises:
        RequestError: ``REQUEST_INVALID``.
    """
    fields = known_fields(value, RecallRequest, hint=HINT)
    limit = fields.get("limit")
    if limit is not None:
        if not is_safe_integer(limit) or not 1 <= limit <= settings.max_limit:
            raise RequestError(
                f"limit must be a whole number from 1 to {settings.max_limit}, not {shown(limit)}.",
                hint=HINT,
            )
        fields["limit"] = int(limit)
    return checked(RecallRequest, fields, hint=HINT)


class RecallHit(Closed):
    """One match; `title` is there if the session has one that could be read in time."""

    session_id: str
    title: str | None = None
    cwd: str | None
    created_at: int
    seq: int
    type: str
    time: int
    surface: str
    snippet: str
    echo: bool | None = None


class RecallResult(Closed):
    """One page of recall.

    `matched_by` is ``substring`` when the page comes from the scan that helps out where the index
    has no word boundaries; `hint` says so, or what to try when there is nothing.
    """

    source: Literal["dsh"]
    query: str
    scope: Literal["project", "all", "session"]
    matched_by: Literal["index", "substring"]
    results: tuple[RecallHit, ...]
    excluded_echoes: int | None = None
    next_cursor: str | None = None
    hint: str | None = None
    diagnostics: tuple[str, ...] | None = None
    unreadable_sessions: tuple[UnreadableSessionReport, ...] | None = None

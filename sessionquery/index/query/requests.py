"""Validation of search requests, in the order of the real engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsh_memory.sessionquery.errors import (
    INVALID_CURSOR,
    INVALID_FILTER,
    INVALID_LIMIT,
    INVALID_QUERY,
    SEARCH_DISABLED,
    SessionQueryError,
)
from dsh_memory.sessionquery.filters import (
    EventFilter,
    ListFilter,
    RangeFilter,
    SessionFilter,
    parse_event_filters,
    parse_session_filters,
)
from dsh_memory.sessionquery.index.query.cursors import request_fingerprint
from dsh_memory.sessionquery.index.query.phrase import searchable
from dsh_memory.sessionquery.js.text import collapse_blanks, is_js_integer, replace_surrogates
from dsh_memory.sessionquery.model.options import EngineOptions

SESSIONS_PREDICATES: Final = 14
EVENTS_PREDICATES: Final = 13
"""How many conditions a request may have (the original's limit)."""

_BOTH_AVAILABILITIES: Final = {"live", "persisted"}


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A normalized request.

    Attributes:
        text: The query: one literal phrase, blanks normalized, in the form that is searched.
        session_id: Of an event search, else None.
        session_filters: ANDed.
        event_filters: ANDed; no text clauses.
        limit: Page size.
        cursor: Not looked at yet.
        fingerprint: What a cursor of this request carries.
    """

    text: str
    session_id: str | None
    session_filters: tuple[SessionFilter, ...]
    event_filters: tuple[EventFilter, ...]
    limit: int
    cursor: str | None
    fingerprint: bytes


def check_search_enabled(options: EngineOptions) -> None:
    """Refuse any search while the index is switched off, before anything else is looked at.

    Raises:
        SessionQueryError: ``SEARCH_DISABLED``.
    """
    if options.open_at == "never":
        raise SessionQueryError(
            'Session search is disabled: the index is configured with open_at "never".',
            code=SEARCH_DISABLED,
            hint="Enable it with: dsh-memory config set index.open_at first-search",
        )


def parse_session_search(
    options: EngineOptions,
    query: Any,
    *,
    session_filters: Any = None,
    event_filters: Any = None,
    limit: Any = None,
    cursor: Any = None,
) -> SearchQuery:
    """Validate a search over all sessions; every argument may be any JSON value.

    Raises:
        SessionQueryError: ``SEARCH_DISABLED``, ``INVALID_FILTER``, ``INVALID_CURSOR`` (no text),
            ``INVALID_QUERY``, ``INVALID_LIMIT``, in this order.
    """
    check_search_enabled(options)
    by_session = parse_session_filters(session_filters) if session_filters is not None else ()
    by_event = _event_filters(event_filters)
    return _finish(options, "sessions", query, None, by_session, by_event, limit, cursor)


def parse_event_search(
    options: EngineOptions,
    session_id: Any,
    query: Any,
    *,
    filters: Any = None,
    limit: Any = None,
    cursor: Any = None,
) -> SearchQuery:
    """Validate a search in one session, as `parse_session_search`."""
    check_search_enabled(options)
    if not isinstance(session_id, str):
        raise SessionQueryError(
            f"The session id of a search must be text, not {session_id!r}.", code=INVALID_FILTER
        )
    by_event = _event_filters(filters)
    session_id = replace_surrogates(session_id)
    return _finish(options, "events", query, session_id, (), by_event, limit, cursor)


def _event_filters(value: Any) -> tuple[EventFilter, ...]:
    return parse_event_filters(value, allow_text=False) if value is not None else ()


def _finish(
    options: EngineOptions,
    scope: str,
    query: Any,
    session_id: str | None,
    by_session: tuple[SessionFilter, ...],
    by_event: tuple[EventFilter, ...],
    limit: Any,
    cursor: Any,
) -> SearchQuery:
    if cursor is not None and not isinstance(cursor, str):
        raise SessionQueryError("A cursor must be text.", code=INVALID_CURSOR)
    normalized = _query(query)
    size = _limit(limit, options)
    budget = SESSIONS_PREDICATES if session_id is None else EVENTS_PREDICATES
    _check_budget((*by_session, *by_event), budget)
    fingerprint = request_fingerprint(
        {
            "scope": scope,
            "session": session_id,
            "query": normalized,
            "sessions": _canonical(by_session),
            "events": _canonical(by_event),
            "limit": size,
        }
    )
    text = searchable(normalized)
    return SearchQuery(text, session_id, by_session, by_event, size, cursor, fingerprint)


def _query(query: Any) -> str:
    if not isinstance(query, str):
        raise SessionQueryError(f"The query must be text, not {query!r}.", code=INVALID_QUERY)
    text = collapse_blanks(replace_surrogates(query))
    if not text:
        raise SessionQueryError("The query must contain more than blanks.", code=INVALID_QUERY)
    if "\0" in text:
        raise SessionQueryError("The query must not contain NUL.", code=INVALID_QUERY)
    return text


def _limit(limit: Any, options: EngineOptions) -> int:
    if limit is None:
        return options.default_limit
    if not is_js_integer(limit) or not 1 <= limit <= options.max_limit:
        raise SessionQueryError(
            f"The limit must be an integer from 1 to {options.max_limit}, not {limit!r}.",
            code=INVALID_LIMIT,
        )
    return int(limit)


def _check_budget(filters: Sequence[SessionFilter | EventFilter], budget: int) -> None:
    used = sum(map(_predicates, filters))
    if used > budget:
        raise SessionQueryError(
            f"The filters have {used} conditions; a search takes at most {budget}.",
            code=INVALID_FILTER,
        )


def _predicates(clause: SessionFilter | EventFilter) -> int:
    if isinstance(clause, RangeFilter):
        return (clause.lower is not None) + (clause.upper is not None)
    if isinstance(clause, ListFilter) and clause.kind == "availability":
        return 0 if set(clause.values) >= _BOTH_AVAILABILITIES else 1
    return 1


def _canonical(filters: Sequence[SessionFilter | EventFilter]) -> list[list[Any]]:
    """Write clauses so that neither their order nor that of their values matters."""
    out: list[list[Any]] = []
    for clause in filters:
        if isinstance(clause, RangeFilter):
            out.append([clause.kind, _number(clause.lower), _number(clause.upper)])
        elif isinstance(clause, ListFilter):
            values = sorted({(value is None, value or "") for value in clause.values})
            out.append([clause.kind, [None if null else value for null, value in values]])
    return sorted(out, key=repr)


def _number(value: float | None) -> float | None:
    return int(value) if isinstance(value, float) and value.is_integer() else value

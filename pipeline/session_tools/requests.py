"""The requests of document 002's five tools.

No cursor, offset, page size or limit can be asked for. Times are ISO 8601 texts with ``Z`` or an
offset; they become milliseconds since the epoch. ``null`` means omitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from dsh_memory.pipeline.shared.errors import RequestError, clipped, shown
from dsh_memory.pipeline.shared.request_fields import (
    LIST_MAXIMUM,
    QUERY_UNITS,
    SESSION_ID_UNITS,
    Request,
    checked,
    integer,
    known_fields,
    refusal,
    text,
)
from dsh_memory.pipeline.shared.timestamps import EPOCH
from dsh_memory.sessionquery.js.text import (
    MAX_SAFE_INTEGER,
    collapse_blanks,
    replace_surrogates,
    trim,
)
from pydantic import BeforeValidator, ValidationInfo

TYPE_UNITS: Final = 200
WINDOW_MAXIMUM: Final = 50
"""Document 002's largest ``before`` and ``after``; the configured one may be smaller."""
HINT: Final = "The tool's parameters say what it takes."

_MILLISECOND: Final = timedelta(milliseconds=1)


def _texts(units: int) -> BeforeValidator:
    def check(value: object, info: ValidationInfo) -> tuple[str, ...]:
        name = info.field_name
        if not isinstance(value, list):
            raise refusal(f"{name} must be a list of texts, not {shown(value)}.")
        if not 1 <= len(value) <= LIST_MAXIMUM:
            raise refusal(f"{name} must have 1 to {LIST_MAXIMUM} values, not {len(value)}.")
        for item in value:
            if not isinstance(item, str) or not trim(item) or len(item) > units:
                raise refusal(f"{name} must hold texts of 1 to {units} characters.")
        return tuple(dict.fromkeys(replace_surrogates(trim(item)) for item in value))

    return BeforeValidator(check)


def _choices(*allowed: str) -> BeforeValidator:
    def check(value: object, info: ValidationInfo) -> tuple[str, ...]:
        if not isinstance(value, list) or not value or any(item not in allowed for item in value):
            raise refusal(
                f"{info.field_name} must be a list of some of {', '.join(allowed)}, "
                f"not {shown(value)}."
            )
        return tuple(dict.fromkeys(value))

    return BeforeValidator(check)


def _moment(value: object, info: ValidationInfo) -> int:
    parsed: datetime | None = None
    if isinstance(value, str) and "T" in value.upper():
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError:
            parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise refusal(
            f"{info.field_name} must be an ISO 8601 time with Z or an offset, not {shown(value)}."
        )
    return (parsed - EPOCH) // _MILLISECOND


def _flag(value: object, info: ValidationInfo) -> bool:
    if not isinstance(value, bool):
        raise refusal(f"{info.field_name} must be true or false, not {shown(value)}.")
    return value


Query = Annotated[str, BeforeValidator(collapse_blanks), text(QUERY_UNITS)]
SessionId = Annotated[str, text(SESSION_ID_UNITS)]
SessionIds = Annotated[tuple[str, ...], _texts(SESSION_ID_UNITS)]
Types = Annotated[tuple[str, ...], _texts(TYPE_UNITS)]
Surfaces = Annotated[tuple[str, ...], _choices("current", "shadowed", "log-only")]
Seq = Annotated[int, integer(0, MAX_SAFE_INTEGER)]
Moment = Annotated[int, BeforeValidator(_moment)]
Window = Annotated[int, integer(0, WINDOW_MAXIMUM, 0)]
Filter = dict[str, Any]


class SessionSearchRequest(Request):
    """``session_search``: the strongest event of each session of the caller's directory."""

    query: Query
    session_ids: SessionIds | None = None
    created_at_from: Moment | None = None
    created_at_to: Moment | None = None
    parent_session_ids: SessionIds | None = None
    include_root_sessions: Annotated[bool, BeforeValidator(_flag)] | None = None
    availability: Annotated[tuple[str, ...], _choices("live", "persisted")] | None = None
    event_seq_from: Seq | None = None
    event_seq_to: Seq | None = None
    event_time_from: Moment | None = None
    event_time_to: Moment | None = None
    event_types: Types | None = None
    event_surfaces: Surfaces | None = None

    def event_filters(self) -> list[Filter]:
        """Return the engine's event filters."""
        return _event_filters(
            seq=(self.event_seq_from, self.event_seq_to),
            time=(self.event_time_from, self.event_time_to),
            types=self.event_types,
            surfaces=self.event_surfaces,
        )


class EventSearchRequest(Request):
    """``session_event_search``: matching events of one session."""

    query: Query
    session_id: SessionId | None = None
    seq_from: Seq | None = None
    seq_to: Seq | None = None
    time_from: Moment | None = None
    time_to: Moment | None = None
    event_types: Types | None = None
    surfaces: Surfaces | None = None

    def event_filters(self) -> list[Filter]:
        """Return the engine's event filters."""
        return _event_filters(
            seq=(self.seq_from, self.seq_to),
            time=(self.time_from, self.time_to),
            types=self.event_types,
            surfaces=self.surfaces,
        )


class SessionTraceRequest(Request):
    """``session_trace``: the lineage around one session."""

    session_id: SessionId | None = None


class EventTraceRequest(Request):
    """``session_event_trace``: replacements and sources of one event."""

    seq: Seq
    session_id: SessionId | None = None


class EventReadRequest(Request):
    """``session_event_read``: one whole event with its neighbours in short."""

    seq: Seq
    session_id: SessionId | None = None
    before: Window = 0
    after: Window = 0


def parse_session_search(value: object) -> SessionSearchRequest:
    """Check a ``session_search`` request of any JSON type.

    Raises:
        RequestError: ``REQUEST_INVALID``.
    """
    request = checked(
        SessionSearchRequest, known_fields(value, SessionSearchRequest, hint=HINT), hint=HINT
    )
    _ordered(request, "created_at", "event_seq", "event_time")
    return request


def parse_event_search(value: object) -> EventSearchRequest:
    """Check a ``session_event_search`` request of any JSON type.

    Raises:
        RequestError: ``REQUEST_INVALID``.
    """
    request = checked(
        EventSearchRequest, known_fields(value, EventSearchRequest, hint=HINT), hint=HINT
    )
    _ordered(request, "seq", "time")
    return request


def parse_session_trace(value: object) -> SessionTraceRequest:
    """Check a ``session_trace`` request of any JSON type.

    Raises:
        RequestError: ``REQUEST_INVALID``.
    """
    fields = known_fields(value, SessionTraceRequest, hint=HINT)
    return checked(SessionTraceRequest, fields, hint=HINT)


def parse_event_trace(value: object) -> EventTraceRequest:
    """Check a ``session_event_trace`` request of any JSON type.

    Raises:
        RequestError: ``REQUEST_INVALID``.
    """
    fields = known_fields(value, EventTraceRequest, hint=HINT)
    return checked(EventTraceRequest, fields, hint=HINT)


def parse_event_read(value: object) -> EventReadRequest:
    """Check a ``session_event_read`` request of any JSON type.

    Raises:
        RequestError: ``REQUEST_INVALID``.
    """
    fields = known_fields(value, EventReadRequest, hint=HINT)
    return checked(EventReadRequest, fields, hint=HINT)


def range_filter(
    kind: Literal["seq", "time", "created-at"], low: int | None, high: int | None
) -> list[Filter]:
    """Return the engine's range clause, or none when both ends are open."""
    ends = {name: end for name, end in (("from", low), ("to", high)) if end is not None}
    return [{"kind": kind, **ends}] if ends else []


def _event_filters(
    *,
    seq: tuple[int | None, int | None],
    time: tuple[int | None, int | None],
    types: tuple[str, ...] | None,
    surfaces: tuple[str, ...] | None,
) -> list[Filter]:
    filters = range_filter("seq", *seq) + range_filter("time", *time)
    if types is not None:
        filters.append({"kind": "type", "values": list(types)})
    if surfaces is not None:
        filters.append({"kind": "surface", "values": list(surfaces)})
    return filters


def _ordered(request: Request, *names: str) -> None:
    values: Mapping[str, Any] = dict(request)
    for name in names:
        low, high = values[f"{name}_from"], values[f"{name}_to"]
        if low is not None and high is not None and low > high:
            raise RequestError(
                f"{name}_from must not be after {name}_to "
                f"({clipped(str(low))} > {clipped(str(high))}).",
                hint="Swap the two ends.",
            )

"""Session and event filters: validation of JSON clauses and their application to records.

Clauses of a list are ANDed, the values of one clause ORed; an empty value list matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dsh_memory.sessionquery.errors import INVALID_FILTER, SessionQueryError
from dsh_memory.sessionquery.js.text import is_finite_number, replace_surrogates, trim

if TYPE_CHECKING:
    from dsh_memory.sessionquery.model.reads import EventDocument
    from dsh_memory.sessionquery.model.sessions import SessionRecord


@dataclass(frozen=True, slots=True)
class ListFilter:
    """``id``, ``cwd``, ``parent``, ``availability``, ``type`` or ``surface``: one of `values`."""

    kind: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class RangeFilter:
    """``created-at`` or ``time`` (ms since the epoch) or ``seq``; both ends belong to the range."""

    kind: str
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class TextFilter:
    """``text``: a literal that the event text contains, ignoring case and kinds of blanks."""

    kind: str
    text: str


SessionFilter = ListFilter | RangeFilter
EventFilter = ListFilter | RangeFilter | TextFilter

_AVAILABILITY: Final = frozenset(("live", "persisted"))
_SURFACES: Final = frozenset(("current", "shadowed", "log-only"))
_NULLABLE: Final = frozenset(("cwd", "parent"))


def parse_session_filters(value: Any) -> tuple[SessionFilter, ...]:
    """Validate session clauses: ``id cwd parent created-at availability``.

    Args:
        value: JSON: a list of ``{"kind": ..., "values": [...]}`` or ``{"kind", "from"?, "to"?}``.

    Raises:
        SessionQueryError: ``INVALID_FILTER``.
    """
    clauses: list[SessionFilter] = []
    for clause in _clauses(value):
        kind = clause.get("kind")
        if kind == "created-at":
            clauses.append(_range(kind, clause))
        elif kind == "availability":
            clauses.append(_list(kind, clause, allowed=_AVAILABILITY))
        elif kind in ("id", "cwd", "parent"):
            clauses.append(_list(kind, clause))
        else:
            raise _unknown_kind(clause)
    return tuple(clauses)


def parse_event_filters(value: Any, *, allow_text: bool = True) -> tuple[EventFilter, ...]:
    """Validate event clauses: ``seq time type surface text``.

    Args:
        value: JSON, a list of clauses.
        allow_text: False for searches, whose text is the query.

    Raises:
        SessionQueryError: ``INVALID_FILTER``.
    """
    clauses: list[EventFilter] = []
    for clause in _clauses(value):
        kind = clause.get("kind")
        if kind in ("seq", "time"):
            clauses.append(_range(kind, clause))
        elif kind == "surface":
            clauses.append(_list(kind, clause, allowed=_SURFACES))
        elif kind == "type":
            clauses.append(_list(kind, clause))
        elif kind == "text":
            if not allow_text:
                raise _invalid("A search takes no text clause; the query is its text.")
            clauses.append(_text(clause))
        else:
            raise _unknown_kind(clause)
    return tuple(clauses)


def session_predicate(filters: Sequence[SessionFilter]) -> Callable[[SessionRecord], bool]:
    """Return a function that tells whether a record satisfies every clause."""
    wanted = _value_sets(filters)

    def matches(record: SessionRecord) -> bool:
        header = record.header
        for clause, values in wanted:
            if isinstance(clause, RangeFilter):
                if not _inside(header.created_at, clause):
                    return False
            elif clause.kind == "availability":
                if not (
                    (record.live and "live" in values)
                    or (record.persisted and "persisted" in values)
                ):
                    return False
            else:
                value = (
                    header.id
                    if clause.kind == "id"
                    else header.cwd
                    if clause.kind == "cwd"
                    else header.parent_session
                )
                if value not in values:
                    return False
        return True

    return matches


def event_predicate(filters: Sequence[EventFilter]) -> Callable[[EventDocument], bool]:
    """Return a function that tells whether a document satisfies every clause."""
    from dsh_memory.sessionquery.js.casefold import literal_matcher

    matchers = {
        clause: literal_matcher(clause.text) for clause in filters if isinstance(clause, TextFilter)
    }
    wanted = _value_sets(filters)

    def matches(document: EventDocument) -> bool:
        for clause, values in wanted:
            if isinstance(clause, RangeFilter):
                value = document.seq if clause.kind == "seq" else document.time
                if not _inside(value, clause):
                    return False
            elif isinstance(clause, TextFilter):
                if not matchers[clause](document.text):
                    return False
            else:
                name = document.type if clause.kind == "type" else document.surface
                if name not in values:
                    return False
        return True

    return matches


def _value_sets(
    filters: Sequence[SessionFilter | EventFilter],
) -> list[tuple[SessionFilter | EventFilter, frozenset[str | None]]]:
    """Return each clause with its values, of which there may be very many."""
    return [
        (clause, frozenset(clause.values) if isinstance(clause, ListFilter) else frozenset())
        for clause in filters
    ]


def _inside(value: int, clause: RangeFilter) -> bool:
    return (clause.lower is None or value >= clause.lower) and (
        clause.upper is None or value <= clause.upper
    )


def _clauses(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, (list, tuple)):
        raise _invalid("Filters must be a list of clauses.")
    for clause in value:
        if not isinstance(clause, Mapping):
            raise _invalid(f"A filter clause must be an object, not {clause!r}.")
    return list(value)


def _list(
    kind: str, clause: Mapping[str, Any], *, allowed: frozenset[str] | None = None
) -> ListFilter:
    values = clause.get("values")
    nullable = kind in _NULLABLE
    if not isinstance(values, (list, tuple)) or not all(
        isinstance(value, str) or (nullable and value is None) for value in values
    ):
        what = "texts or nulls" if nullable else "texts"
        raise _invalid(f"The values of a {kind} filter must be a list of {what}.")
    if allowed is not None:
        for value in values:
            if value not in allowed:
                raise _invalid(
                    f"A {kind} filter knows {', '.join(sorted(allowed))}, not {value!r}."
                )
    return ListFilter(
        kind, tuple(None if value is None else replace_surrogates(value) for value in values)
    )


def _range(kind: str, clause: Mapping[str, Any]) -> RangeFilter:
    for key in ("from", "to"):
        if key in clause and not is_finite_number(clause[key]):
            raise _invalid(f"{key!r} of a {kind} filter must be a number, not {clause[key]!r}.")
    lower, upper = clause.get("from"), clause.get("to")
    if lower is not None and upper is not None and lower > upper:
        raise _invalid(f"A {kind} filter begins at {lower} and ends before it, at {upper}.")
    return RangeFilter(kind, lower, upper)


def _text(clause: Mapping[str, Any]) -> TextFilter:
    text = clause.get("text")
    if not isinstance(text, str):
        raise _invalid("The text of a text filter must be text.")
    if not trim(text):
        raise _invalid("The text of a text filter must not be blank.")
    return TextFilter("text", replace_surrogates(text))


def _unknown_kind(clause: Mapping[str, Any]) -> SessionQueryError:
    kind = repr(clause["kind"]) if "kind" in clause else "(missing)"
    return _invalid(f"Unknown filter kind {kind}.")


def _invalid(message: str) -> SessionQueryError:
    return SessionQueryError(message, code=INVALID_FILTER)

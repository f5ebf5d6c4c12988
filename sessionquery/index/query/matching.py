"""Finding, counting and ranking the documents that match a phrase."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.filters import EventFilter, ListFilter, RangeFilter
from dsh_memory.sessionquery.index.file.schema import (
    SEQ_BITS,
    SEQ_MASK,
    SURFACE_NUMBERS,
    TYPE_NUMBERS,
)
from dsh_memory.sessionquery.index.query.counting import (
    WEIGHT,
    CountScale,
    count_scale,
    order_factor,
)
from dsh_memory.sessionquery.index.query.phrase import Phrase, Tokenizer

_BATCH: Final = 4096
_LARGEST: Final = 2**63 - 1


Row = tuple[int, float, int, int]
"""``(document id, count of highlighted runs, length in code points, time in ms)``. The count may
be in an unknown unit when nothing is compared with it but the rows of the same search."""


class Match(NamedTuple):
    """A matching document; tuples compare in the order of event searches.

    Attributes:
        fewer: Minus the number of highlighted runs, see `Row`.
        length: Code points of the document.
        earlier: Minus its time (ms).
        lower: Minus its id.
    """

    fewer: float
    length: int
    earlier: int
    lower: int

    @property
    def id(self) -> int:
        return -self.lower

    @property
    def log_id(self) -> int:
        return -self.lower >> SEQ_BITS


@dataclass(frozen=True, slots=True)
class Scope:
    """Which documents may match.

    Attributes:
        filters: Event clauses, ANDed.
        as_of: Rows with a later time (ms) do not exist, None for no such limit.
        log_id: Only this log, None for all.
    """

    filters: Sequence[EventFilter] = ()
    as_of: int | None = None
    log_id: int | None = None


def best_matches(
    rows: Iterator[Row], allowed: Mapping[int, Any] | frozenset[int]
) -> dict[int, Match]:
    """Return the strongest match of each allowed log.

    Args:
        rows: ``(id, count, length, time)``.
        allowed: Numbers of the logs that count.
    """
    best: dict[int, Match] = {}
    for number, count, length, when in rows:
        log_id = number >> SEQ_BITS
        old = best.get(log_id)
        if old is None:
            if log_id in allowed:
                best[log_id] = Match(-count, length, -when, -number)
        elif -count <= old[0]:
            match = (-count, length, -when, -number)
            if match < old:
                best[log_id] = Match._make(match)
    return best


def all_matches(rows: Iterator[Row]) -> list[Match]:
    """Return every match, strongest first."""
    out = [Match(-count, length, -when, -number) for number, count, length, when in rows]
    out.sort()
    return out


def find_matches(
    connection: sqlite3.Connection,
    tokenizer: Tokenizer,
    phrase: Phrase,
    scope: Scope,
    *,
    comparable: bool = True,
    signal: AbortSignal,
) -> Iterator[Row]:
    """Yield each matching document, ascending by id.

    Args:
        connection: Inside the caller's reading transaction.
        tokenizer: Tells the tokens of texts where that is needed.
        phrase: The query.
        scope: Which documents may match.
        comparable: Whether the counts must be true numbers, to be compared with those of another
            index or another search; that costs one more pass over the matches.
        signal: Polled now and then.

    Raises:
        SessionQueryError: ``ABORTED``.
    """
    if not phrase.tokens:
        return iter(())
    if not comparable and phrase.overlap is None:
        order = order_factor(connection)
        if order is not None:
            batches = _batches(connection, phrase.expression, order, scope, signal)
            # A loop in C over the rows of all batches: a common word has very many.
            return chain.from_iterable(batches)
    scale = count_scale(connection, phrase.expression)
    if not scale.matches:
        return iter(())
    factor = scale.factor or 0.0
    rows = _rounded(_batches(connection, phrase.expression, factor, scope, signal))
    if scale.factor is None or phrase.overlap == "":
        return _counted_by_text(connection, tokenizer, phrase, scale, rows)
    if phrase.overlap is None:
        return rows
    return _without_overlaps(connection, phrase.overlap, scope, signal, rows)


def _without_overlaps(
    connection: sqlite3.Connection,
    expression: str,
    scope: Scope,
    signal: AbortSignal,
    rows: Iterator[Row],
) -> Iterator[Row]:
    scale = count_scale(connection, expression)
    overlaps: dict[int, float] = {}
    if scale.factor is not None:
        whole = Scope(log_id=scope.log_id)
        rows_of_overlaps = _rounded(_batches(connection, expression, scale.factor, whole, signal))
        overlaps = {number: count for number, count, _, _ in rows_of_overlaps}
    for number, count, length, when in rows:
        yield number, count - overlaps.get(number, 0), length, when


def _counted_by_text(
    connection: sqlite3.Connection,
    tokenizer: Tokenizer,
    phrase: Phrase,
    scale: CountScale,
    rows: Iterator[Row],
) -> Iterator[Row]:
    for number, count, length, when in rows:
        if scale.factor is not None and count == 1:
            yield number, 1, length, when
            continue
        (text,) = connection.execute("SELECT text FROM texts WHERE id = ?", (number,)).fetchone()
        yield number, phrase.runs_in(tokenizer.tokens(text)), length, when


def _rounded(batches: Iterator[list[Row]]) -> Iterator[Row]:
    for number, count, length, when in chain.from_iterable(batches):
        yield number, int(count + 0.5), length, when


def _batches(
    connection: sqlite3.Connection,
    expression: str,
    factor: float,
    scope: Scope,
    signal: AbortSignal,
) -> Iterator[list[Row]]:
    """Yield the matching documents with their numbers of phrase instances, by some factor."""
    bounds = ""
    parameters: list[Any] = [factor, WEIGHT, expression]
    if scope.log_id is not None:
        bounds = " AND rowid BETWEEN ? AND ?"
        first = scope.log_id << SEQ_BITS
        parameters += [first, first | SEQ_MASK]
    conditions, values = _conditions(scope)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    # LIMIT keeps SQLite from merging the inner query, in which alone bm25() can be used.
    cursor = connection.execute(
        "SELECT d.id, m.weight * ?, d.length, d.time FROM"
        f" (SELECT rowid AS id, bm25(fts, ?) AS weight FROM fts WHERE fts MATCH ?{bounds}"
        " LIMIT -1) AS m CROSS JOIN docs AS d ON d.id = m.id" + where,
        [*parameters, *values],
    )
    while rows := cursor.fetchmany(_BATCH):
        signal.raise_if_aborted()
        yield rows


def surface_expression(as_of: int | None) -> tuple[str, list[int]]:
    """Return SQL for a document's surface at a time, with its parameters."""
    if as_of is None:
        return "d.surface", []
    current = SURFACE_NUMBERS["current"]
    return f"CASE WHEN d.shadowed_at > ? THEN {current} ELSE d.surface END", [as_of]


def _conditions(scope: Scope) -> tuple[list[str], list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    if scope.as_of is not None:
        conditions.append("d.time <= ?")
        values.append(scope.as_of)
    for clause in scope.filters:
        if isinstance(clause, RangeFilter):
            column = f"(d.id & {SEQ_MASK})" if clause.kind == "seq" else "d.time"
            for operator, bound in ((">=", clause.lower), ("<=", clause.upper)):
                if bound is not None:
                    conditions.append(f"{column} {operator} ?")
                    values.append(float(bound) if abs(bound) > _LARGEST else bound)
        elif isinstance(clause, ListFilter):
            expression, parameters = (
                ("d.type", []) if clause.kind == "type" else surface_expression(scope.as_of)
            )
            numbers: dict[Any, int] = dict(
                TYPE_NUMBERS if clause.kind == "type" else SURFACE_NUMBERS
            )
            wanted = sorted({numbers[value] for value in clause.values if value in numbers})
            conditions.append(f"{expression} IN ({', '.join(map(str, wanted))})")
            values += parameters
    return conditions, values

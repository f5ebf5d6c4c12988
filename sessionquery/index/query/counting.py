"""Exact match counts out of FTS5's ranking function.

``highlight()`` costs time quadratic in the matches of a document, and a vocabulary table cannot
count phrases. ``bm25()`` counts phrase instances in C but answers with a weight. In our table that
weight can be undone exactly: every document has the same length (contentless, no column sizes: -1
tokens), so for f instances and column weight w

    bm25 = -idf * w f (k1 + 1) / (w f + K),   K = k1 (1 - b + b * -1 / average length)

With w so small that ``w f + K == K`` in floating point this is linear in f. w is a power of two,
so w f is exact, and f comes out with a relative error of a few 1e-16.
"""

from __future__ import annotations

import math
import sqlite3
from dataclasses import dataclass
from typing import Final

WEIGHT: Final = 2.0**-70

_K1: Final = 1.2
_B: Final = 0.75
_SMALLEST_IDF: Final = 1e-6
_AVERAGES_ROW: Final = 1


@dataclass(frozen=True, slots=True)
class CountScale:
    """How to read counts out of ``bm25(fts, WEIGHT)`` for one query in one state of the index.

    Attributes:
        matches: How many documents match.
        factor: Number of instances per unit of ``bm25``; None when the weights tell nothing.
    """

    matches: int
    factor: float | None


def count_scale(connection: sqlite3.Connection, expression: str) -> CountScale:
    """Work out the scale for an FTS5 expression of one phrase, inside the reading transaction."""
    (matches,) = connection.execute(
        "SELECT count(*) FROM fts WHERE fts MATCH ?", (expression,)
    ).fetchone()
    rows, tokens = _totals(connection)
    saturation = _saturation(rows, tokens)
    if not matches or saturation is None:
        return CountScale(matches, None)
    rarity = math.log((rows - matches + 0.5) / (matches + 0.5))
    if rarity <= 0:
        rarity = _SMALLEST_IDF
    return CountScale(matches, -saturation / (rarity * WEIGHT * (_K1 + 1.0)))


def order_factor(connection: sqlite3.Connection) -> float | None:
    """Return the sign with which ``bm25(fts, WEIGHT)`` grows with the count, None if it does not.

    It takes no look at the matches, so it is cheaper than `count_scale`; the products only compare
    within one query.
    """
    saturation = _saturation(*_totals(connection))
    return None if saturation is None else math.copysign(1.0, -saturation)


def _saturation(rows: int, tokens: int) -> float | None:
    if not rows or not tokens:
        return None
    saturation = _K1 * (1 - _B + _B * -1.0 / (float(tokens) / float(rows)))
    return saturation if abs(saturation) >= 1e-9 else None


def _totals(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return how many documents and tokens the index holds (FTS5's own averages record)."""
    row = connection.execute("SELECT block FROM fts_data WHERE id = ?", (_AVERAGES_ROW,)).fetchone()
    if row is None or not row[0]:
        return 0, 0
    rows, used = _varint(row[0], 0)
    tokens, _ = _varint(row[0], used)
    return rows, tokens


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for index in range(9):
        byte = data[position + index]
        if index == 8:
            return value << 8 | byte, position + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, position + index + 1
    raise AssertionError("unreachable")

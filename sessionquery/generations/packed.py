"""Rows of generations 0 and 1, which pack runs of stream chunks.

A packed row stands for as many ``assistant/chunk`` events as it has members; it travels through
the steps as it is. Of other rows only `sourceEventSeqs` is looked at here: their keys are the
business of the first migration step, which refuses instead of cutting the log off.
"""

from __future__ import annotations

from typing import Any, Final

from dsh_memory.sessionquery.generations.shapes import (
    Check,
    Maybe,
    Shape,
    count,
    integer,
    integers,
    name,
    text,
    texts,
)
from dsh_memory.sessionquery.generations.values import Row
from dsh_memory.sessionquery.js.text import is_count, is_js_integer

PACKED_MEMBERS: Final = {
    "text-chunks": "texts",
    "reasoning-chunks": "texts",
    "tool-call-chunks": "args",
}
"""Packed row types and the key that holds their members."""

CHUNK_TYPES: Final = frozenset(PACKED_MEMBERS) | {"assistant/chunk"}
"""All rows that hold pieces of streamed answers."""

_PLACE: Final[dict[str, Check | Maybe]] = {
    "turn": count,
    "step": count,
    "index": count,
    "dt": integers,
}
_TEXTS: Final = Shape(type=text, seq0=count, time0=integer, data=Shape(texts=texts, **_PLACE))
_CALLS: Final = Shape(
    type=text,
    seq0=count,
    time0=integer,
    data=Shape(id=name, name=Maybe(text), args=texts, **_PLACE),
)


def is_packed(row: Row) -> bool:
    """Whether `row` stands for several chunk events."""
    return row["type"] in PACKED_MEMBERS


def row_length(row: Row) -> int:
    """How many events the packed `row` stands for."""
    return len(row["data"][PACKED_MEMBERS[row["type"]]])


def read_packing_row(value: Any) -> Row | None:
    """Return the row with unpacked `sourceEventSeqs`, None if it is malformed.

    A type that is no string becomes the empty one, which no table knows.
    """
    if type(value) is not dict:
        return None
    row: Row = value
    kind = row.get("type")
    if kind.__class__ is not str:
        return {**row, "type": ""}
    if kind in PACKED_MEMBERS:
        return row if _is_well_packed(row) else None
    if "sourceEventSeqs" in row:
        sources = _unpack_sources(row["sourceEventSeqs"], row.get("seq"))
        if sources is None:
            return None
        row["sourceEventSeqs"] = sources
    if row.get("seq").__class__ is float or row.get("time").__class__ is float:
        _use_integers(row)
    return row


def _use_integers(row: Row) -> None:
    for key in ("seq", "time"):
        if is_js_integer(row.get(key)):
            row[key] = int(row[key])


def _is_well_packed(row: Row) -> bool:
    shape = _CALLS if row["type"] == "tool-call-chunks" else _TEXTS
    if not shape(row):
        return False
    data = row["data"]
    return len(data["dt"]) == len(data[PACKED_MEMBERS[row["type"]]]) - 1


def _unpack_sources(value: Any, limit: Any) -> list[int] | None:
    """Expand ``[3, [5, 7]]`` to ``[3, 5, 6, 7]``; None if malformed or longer than `limit`.

    Numbers must ascend if the list has a pair; otherwise any order will do here.
    """
    if type(value) is not list or not is_count(limit):
        return None
    if not any(type(item) is list for item in value):
        return value if all(map(is_count, value)) and len(value) <= limit else None
    seqs: list[int] = []
    for item in value:
        first, last = item if type(item) is list and len(item) == 2 else (item, item)
        if not is_count(first) or not is_count(last) or first > last:
            return None
        if last - first >= limit - len(seqs) or (seqs and first <= seqs[-1]):
            return None
        seqs.extend(range(int(first), int(last) + 1))
    return seqs

"""Event rows: the known types, the envelope, and packed source lists."""

from __future__ import annotations

from itertools import pairwise
from math import copysign
from typing import Any, Final

from dsh_memory.sessionquery.js.text import MAX_SAFE_INTEGER, is_count, is_js_integer

_OPTIONAL_KEYS: Final = frozenset(("surfaceOp", "sourceEventSeqs", "ignorable"))


def unpack_sources(packed: Any, seq: int) -> list[int] | None:
    """Unpack ``[1,[4,9],12]``; None if it is no list of distinct numbers below `seq`.

    A list with ranges must ascend, one without may have any order.
    """
    if not isinstance(packed, list):
        return None
    out: list[int] = []
    ranges = False
    for entry in packed:
        if isinstance(entry, list):
            if len(entry) != 2 or not is_count(entry[0]) or not is_count(entry[1]):
                return None
            first, last = int(entry[0]), int(entry[1])
            if first > last or last >= seq:
                return None
            out.extend(range(first, last + 1))
            ranges = True
        elif is_count(entry) and entry < seq:
            out.append(int(entry))
        else:
            return None
    if ranges and any(later <= earlier for earlier, later in pairwise(out)):
        return None
    return out if len(set(out)) == len(out) else None


def normalize_row(row: Any, seq: int) -> bool:
    """Check the envelope of a row that should be event number `seq`, and normalize it in place.

    Numbers such as ``4.0`` become integers and ``sourceEventSeqs`` is unpacked. Payloads are not
    looked at.

    Returns:
        False if the row is broken (document: "broken row").
    """
    if row.__class__ is not dict:
        return False
    try:
        kind, number, time = row["type"], row["seq"], row["time"]
        size = len(row)
        row["data"]
    except KeyError:
        return False
    if kind.__class__ is not str:
        return False
    if number.__class__ is not int:
        if not is_js_integer(number):
            return False
        row["seq"] = number = int(number)
    if number != seq:
        return False
    if time.__class__ is not int:
        if not is_js_integer(time) or (time == 0 and copysign(1.0, time) < 0):
            return False
        row["time"] = time = int(time)
    if not -MAX_SAFE_INTEGER <= time <= MAX_SAFE_INTEGER:
        return False
    if kind == "session/end-seed" and row["data"].__class__ is not dict:
        return False
    if size == 4:
        return True
    for key in row:
        if key not in ("type", "seq", "time", "data") and key not in _OPTIONAL_KEYS:
            return False
    if "ignorable" in row and row["ignorable"] is not True:
        return False
    if "sourceEventSeqs" in row:
        sources = unpack_sources(row["sourceEventSeqs"], seq)
        if sources is None:
            return False
        row["sourceEventSeqs"] = sources
    return True

"""From lines to rows: what of an old log still counts, and what proves it corrupt.

Two layers look at every line. The *line layer* parses JSON; after the first line that is no JSON
nothing later counts. The *row layer* checks that a row is well-formed and carries the next number;
after the first one that is not, nothing later counts either. A later ``turn/end`` shows that what
was lost had once been complete, and makes the log corrupt (FORMAT, "Lines").

Generations 0 and 1 pack runs of stream chunks into one row that stands for as many events as it
has members; such rows pass through as they are, under their packed type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sessionquery.generations.problems import CorruptLogError, MigrationRefusedError
from sessionquery.generations.tables import LOG_TYPES
from sessionquery.generations.values import Row, is_name, keys
from sessionquery.jsontext import JsonDepthError, JsonError, parse_json
from sessionquery.jstext import is_count, is_safe_integer
from sessionquery.rows import SURFACE_TYPES, unpack_sources

PACKED_MEMBERS = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
"""Packed row types and the key that holds their members."""

_PACKED_ROW = keys("type seq0 time0 data")
_PACKED_DATA = {
    "text-chunks": keys("turn step index dt texts"),
    "reasoning-chunks": keys("turn step index dt texts"),
    "tool-call-chunks": keys("turn step index id dt args | name"),
}
_STRICT_ROW = keys("type seq time data | ignorable surfaceOp sourceEventSeqs")
_REPLACE = keys("op startSeq endSeq")
_SYSTEM_DATA = keys("turn step message")
_SYSTEM_MESSAGE = keys("id role source content")

_NOT_JSON = object()


@dataclass(frozen=True, slots=True)
class Codec:
    """The row layer of one generation.

    Attributes:
        read: Returns the row in its unpacked form, or None if it is malformed.
        inspect: Raises for content that condemns the log even behind a broken row.
        accept: Whether a well-formed row with the right number may stand in the log.
    """

    read: Callable[[Any], Row | None]
    inspect: Callable[[Any], None] | None = None
    accept: Callable[[Row], bool] | None = None


def decode(
    lines: Iterable[bytes | memoryview], generation: int, *, is_seeded: bool
) -> Iterator[Row]:
    """Yield the rows of a log of `generation` 0-3 that count; `lines` follow the header line.

    Raises:
        CorruptLogError: A ``turn/end`` stands behind a broken row, or a seeded log of generation
            2 or 3 does not say where its inherited part ends.
        MigrationRefusedError: A generation-3 row of a type that generation 4 has no form for.
    """
    codec = _CODECS[generation]
    count = 0
    lines_end = rows_end = False
    awaits_marker = is_seeded and generation >= 2
    for line in lines:
        value = _parse(line)
        if value is _NOT_JSON:
            lines_end = True
        elif lines_end:
            if type(value) is dict and value.get("type") == "turn/end":
                raise CorruptLogError("a turn/end stands behind a line that is not JSON")
        else:
            if codec.inspect is not None:
                codec.inspect(value)
            row = codec.read(value)
            if row is None:
                rows_end = True
            elif rows_end or not _is_next(row, count) or not _is_accepted(codec, row):
                rows_end = True
                if row.get("type") == "turn/end":
                    raise CorruptLogError("a turn/end stands at or behind a broken row")
            else:
                count += row_length(row)
                if awaits_marker and _is_marker(row):
                    awaits_marker = False
                yield row
    if awaits_marker:
        raise CorruptLogError("a seeded log has no inherited end-seed marker")


def row_length(row: Row) -> int:
    """How many events `row` stands for."""
    return len(row["data"][PACKED_MEMBERS[row["type"]]]) if is_packed(row) else 1


def is_packed(row: Row) -> bool:
    """Whether `row` stands for several chunk events."""
    kind = row.get("type")
    return type(kind) is str and kind in PACKED_MEMBERS


def _is_marker(row: Row) -> bool:
    data = row["data"]
    return (
        row["type"] == "session/end-seed" and type(data) is dict and data.get("inherited") is True
    )


def _parse(line: bytes | memoryview) -> Any:
    try:
        return parse_json(line)
    except JsonDepthError:
        raise
    except JsonError:
        return _NOT_JSON


def _is_next(row: Row, count: int) -> bool:
    seq = row["seq0"] if is_packed(row) else row.get("seq")
    return type(seq) is not bool and seq == count


def _is_accepted(codec: Codec, row: Row) -> bool:
    return codec.accept is None or codec.accept(row)


# Generations 0 and 1: key sets are the business of the first migration step, which refuses.


def _read_loose(value: Any) -> Row | None:
    if type(value) is not dict:
        return None
    if is_packed(value):
        return value if _is_packed_row(value) else None
    if "sourceEventSeqs" not in value:
        return value
    sources = _unpack_loose(value["sourceEventSeqs"], value.get("seq"))
    if sources is None:
        return None
    value["sourceEventSeqs"] = sources
    return value


def _is_packed_row(row: Row) -> bool:
    kind = row["type"]
    data = row.get("data")
    if not _PACKED_ROW.fit(row) or not _PACKED_DATA[kind].fit(data):
        return False
    members, gaps = data[PACKED_MEMBERS[kind]], data["dt"]
    return (
        is_count(row["seq0"])
        and is_safe_integer(row["time0"])
        and all(is_count(data[key]) for key in ("turn", "step", "index"))
        and type(members) is list
        and len(members) > 0
        and all(type(member) is str for member in members)
        and type(gaps) is list
        and len(gaps) == len(members) - 1
        and all(is_safe_integer(gap) for gap in gaps)
        and type(data.get("id", "")) is str
        and type(data.get("name", "")) is str
    )


def _unpack_loose(value: Any, limit: Any) -> list[int] | None:
    """Expand ``[3, [5, 7]]`` to ``[3, 5, 6, 7]``; None if malformed or longer than `limit`."""
    if type(value) is not list or not is_count(limit):
        return None
    if not any(type(item) is list for item in value):
        return value if all(is_count(item) for item in value) and len(value) <= limit else None
    seqs: list[int] = []
    for item in value:
        first, last = _bounds(item)
        if first is None or last is None or last - first >= limit - len(seqs):
            return None
        if seqs and first <= seqs[-1]:
            return None
        seqs.extend(range(first, last + 1))
    return seqs


def _bounds(item: Any) -> tuple[int | None, int | None]:
    if is_count(item):
        return int(item), int(item)
    if type(item) is list and len(item) == 2 and all(is_count(end) for end in item):
        return (int(item[0]), int(item[1])) if item[0] <= item[1] else (None, None)
    return None, None


# Generations 2 and 3: a strict envelope.


def _read_strict(value: Any) -> Row | None:
    if (
        not _STRICT_ROW.fit(value)
        or type(value["type"]) is not str
        or not is_count(value["seq"])
        or not is_safe_integer(value["time"])
        or value.get("ignorable", True) is not True
    ):
        return None
    row: Row = value
    row["seq"], row["time"] = int(row["seq"]), int(row["time"])
    if "sourceEventSeqs" in row:
        sources = unpack_sources(row["sourceEventSeqs"], row["seq"])
        if sources is None:
            return None
        row["sourceEventSeqs"] = sources
    return row


# Generation 3 checks more of each row while it decodes.


def _inspect_v3(value: Any) -> None:
    if type(value) is not dict:
        return
    kind = value.get("type")
    if kind == "request/header":
        data = value.get("data")
        header = data.get("header") if type(data) is dict else None
        if type(header) is not dict:
            raise CorruptLogError("a request/header row has no header")
        if "system" in header:
            raise MigrationRefusedError("a generation-3 request/header carries a system prompt")
    elif kind in ("tool/code-dispatch", "tool/code-dispatch-start"):
        if "ignorable" not in value:
            raise MigrationRefusedError(f"generation 3 has no {kind}")
    elif kind == "system/message" and not _is_system_message(value.get("data")):
        raise CorruptLogError("a system/message row is malformed")


def _is_system_message(data: Any) -> bool:
    if not _SYSTEM_DATA.fit(data) or not _SYSTEM_MESSAGE.fit(data["message"]):
        return False
    message = data["message"]
    source = message["source"]
    return (
        all(is_count(data[key]) and data[key] >= 1 for key in ("turn", "step"))
        and message["role"] == "system"
        and type(source) is dict
        and source.get("kind") == "plugin"
        and is_name(source.get("plugin"))
    )


def _accept_v3(row: Row) -> bool:
    kind = row["type"]
    if kind in SURFACE_TYPES:
        return _accept_v3_surface(row)
    if kind in LOG_TYPES and ("surfaceOp" in row or "sourceEventSeqs" in row):
        return False
    if row.get("sourceEventSeqs") == []:
        return False
    if kind == "request/header":
        header = row["data"]["header"]
        return header.get("tools") != [] and header.get("adapterDefaults") != {}
    return True


def _accept_v3_surface(row: Row) -> bool:
    if row.get("sourceEventSeqs") == [] or not _is_surface_op(row.get("surfaceOp"), row["seq"]):
        return False
    if row["type"] == "assistant/message":
        return "sourceEventSeqs" not in row
    if row["type"] == "tool/result":
        return not flags_error_without_block(row["data"])
    return True


def _is_surface_op(op: Any, seq: int) -> bool:
    if op == "append":
        return True
    return (
        _REPLACE.fit(op)
        and op["op"] == "replace"
        and all(is_count(op[key]) and op[key] < seq for key in ("startSeq", "endSeq"))
    )


def flags_error_without_block(data: Any) -> bool:
    """Whether a wrapped ``tool/result`` has `error` although its block is not ``isError:true``."""
    if type(data) is not dict or "error" not in data:
        return False
    message = data.get("message")
    content = message.get("content") if type(message) is dict else None
    block = content[0] if type(content) is list and content else None
    return type(block) is not dict or block.get("isError") is not True


_CODECS = (
    Codec(read=_read_loose),
    Codec(read=_read_loose),
    Codec(read=_read_strict),
    Codec(read=_read_strict, inspect=_inspect_v3, accept=_accept_v3),
)

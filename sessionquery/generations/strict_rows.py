"""Rows of generations 2 and 3: a strict envelope, and in generation 3 more than that."""

from __future__ import annotations

from typing import Any, Final

from dsh_memory.sessionquery.generations.known_types import LOG_ONLY_3
from dsh_memory.sessionquery.generations.messages import block, plugin_source
from dsh_memory.sessionquery.generations.problems import CorruptLogError, MigrationRefusedError
from dsh_memory.sessionquery.generations.shapes import (
    Maybe,
    Shape,
    anything,
    count,
    integer,
    list_of,
    name,
    one_of,
    positive,
    text,
    true,
)
from dsh_memory.sessionquery.generations.values import Row
from dsh_memory.sessionquery.model.event_types import SURFACE_TYPES
from dsh_memory.sessionquery.rules.envelope import unpack_sources

_ROW: Final = Shape(
    type=text,
    seq=count,
    time=integer,
    data=anything,
    ignorable=Maybe(true),
    surfaceOp=Maybe(anything),
    sourceEventSeqs=Maybe(anything),
)
_REPLACE: Final = Shape(op=one_of("replace"), startSeq=count, endSeq=count)


def read_strict_row(value: Any) -> Row | None:
    """Return the row with unpacked `sourceEventSeqs`, None if it is malformed."""
    if not _ROW(value):
        return None
    row: Row = value
    if row["type"] == "session/end-seed" and type(row["data"]) is not dict:
        return None
    row["seq"], row["time"] = int(row["seq"]), int(row["time"])
    if "sourceEventSeqs" in row:
        sources = unpack_sources(row["sourceEventSeqs"], row["seq"])
        if sources is None:
            return None
        row["sourceEventSeqs"] = sources
    return row


_SYSTEM_MESSAGE: Final = Shape(
    turn=positive,
    step=positive,
    message=Shape(
        id=name,
        role=one_of("system"),
        source=plugin_source,
        content=list_of(block),
    ),
)


def inspect_3(value: Any) -> None:
    """Look at a generation 3 row whatever stands before it.

    Raises:
        CorruptLogError: A request header or system message without its parts.
        MigrationRefusedError: A prompt inside a request header, or a type of generation 2.
    """
    kind = value.get("type") if type(value) is dict else None
    if kind == "request/header":
        data = value.get("data")
        header = data.get("header") if type(data) is dict else None
        if type(header) is not dict:
            raise CorruptLogError("a request/header row has no header")
        if "system" in header:
            raise MigrationRefusedError("a generation 3 request/header carries a system prompt")
    elif kind in ("tool/code-dispatch", "tool/code-dispatch-start"):
        if "ignorable" not in value:
            raise MigrationRefusedError(f"generation 3 has no {kind}")
    elif kind == "system/message" and not _SYSTEM_MESSAGE(value.get("data")):
        raise CorruptLogError("a system/message row is malformed")


def accept_3(row: Row) -> bool:
    """Whether a well-formed row may stand in a generation 3 log."""
    kind = row["type"]
    if row.get("sourceEventSeqs") == []:
        return False
    if kind in SURFACE_TYPES:
        return _accept_surface(row)
    if kind in LOG_ONLY_3 and ("surfaceOp" in row or "sourceEventSeqs" in row):
        return False
    if kind == "request/header":
        header = row["data"]["header"]
        return bool(header.get("tools") != [] and header.get("adapterDefaults") != {})
    return True


def _accept_surface(row: Row) -> bool:
    op = row.get("surfaceOp")
    if op != "append" and not (
        _REPLACE(op) and op["startSeq"] < row["seq"] and op["endSeq"] < row["seq"]
    ):
        return False
    if row["type"] == "assistant/message":
        return "sourceEventSeqs" not in row
    if row["type"] != "tool/result":
        return True
    data = row["data"]
    return type(data) is dict and not _flags_error_without_block(data)


def _flags_error_without_block(data: dict[str, Any]) -> bool:
    """Whether a wrapped tool result has `error` although its block is not ``isError:true``."""
    if "error" not in data:
        return False
    message = data.get("message")
    content = message.get("content") if type(message) is dict else None
    block = content[0] if type(content) is list and content else None
    return (
        type(block) is not dict
        or block.get("type") != "tool-result"
        or block.get("isError") is not True
    )

"""What is asked of a row whatever its envelope and its place.

The original judges some payloads while it decodes a row, before it looks at the envelope. So these
faults make a log corrupt even in a broken row or behind one, where rows do not count otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dsh_memory.sessionquery.js.text import is_count
from dsh_memory.sessionquery.model.event_types import SURFACE_TYPES
from dsh_memory.sessionquery.rules.messages import (
    check_blocks,
    check_system_blocks,
    check_tool_message,
    is_name,
    require,
)

RETIRED_TYPES: Final = frozenset(("tool/code-dispatch", "tool/code-dispatch-start"))
"""Types of older formats that are refused in this one, unless they are marked ignorable."""

_MESSAGE_LISTS: Final = {"agent/inbox/spliced": "inserted", "session/title-llm-request": "messages"}


def check_decodable(row: dict[str, Any]) -> None:
    """Check a row that is JSON, an object, and broken or behind a broken one.

    Raises:
        BodyError: The log is corrupt because of it.
    """
    kind, data = row.get("type"), row.get("data")
    if not isinstance(kind, str):
        return
    check = _CHECKS.get(kind)
    if check is not None:
        check(data)
    for message in _messages(kind, data) if isinstance(data, dict) else ():
        if isinstance(message, dict):
            source = message.get("source")
            if isinstance(source, dict):
                require(source.get("kind") != "plugin", "has a message of the source 'plugin'")
            check_blocks(message.get("content"), developer=kind == "developer/message")


def _messages(kind: str, data: dict[str, Any]) -> Sequence[Any]:
    if kind == "user/message":
        return (data,)
    if kind in SURFACE_TYPES:
        return (data.get("message"),)
    several = data.get(_MESSAGE_LISTS[kind]) if kind in _MESSAGE_LISTS else None
    return several if isinstance(several, list) else ()


def _tool_result(data: Any) -> None:
    require(isinstance(data, dict), "is a tool result without a payload")
    message = data.get("message")
    require(isinstance(message, dict), "is a tool result without a message")
    require(
        is_name(message.get("id"))
        and message.get("role") == "tool"
        and isinstance(message.get("content"), list)
        and isinstance(message.get("source"), dict)
        and message["source"].get("kind") == "tool",
        "is no proper tool result",
    )
    check_tool_message(data)


def _system_message(data: Any) -> None:
    message = _placed(data)
    require(message.get("role") == "system" and is_name(message.get("id")), "is no system message")
    require(isinstance(message.get("content"), list), "is a system message without content")
    check_system_blocks(message["content"])


def _developer_message(data: Any) -> None:
    message = _placed(data)
    source = message.get("source")
    require(
        message.get("role") == "developer"
        and is_name(message.get("id"))
        and isinstance(message.get("content"), list)
        and isinstance(source, dict)
        and is_name(source.get("kind")),
        "is no developer message",
    )


def _placed(data: Any) -> dict[str, Any]:
    require(isinstance(data, dict), "has no payload")
    require(is_count(data.get("turn")) and is_count(data.get("step")), "stands in no turn and step")
    message = data.get("message")
    require(isinstance(message, dict), "has no message")
    return message  # type: ignore[no-any-return]


def _request_header(data: Any) -> None:
    require(isinstance(data, dict) and isinstance(data.get("header"), dict), "has no header")
    require("system" not in data["header"], "has a system prompt in its header")


_CHECKS: Final[dict[str, Callable[[Any], None]]] = {
    "tool/result": _tool_result,
    "system/message": _system_message,
    "developer/message": _developer_message,
    "request/header": _request_header,
}

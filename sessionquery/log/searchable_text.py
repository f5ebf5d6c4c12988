"""The searchable text of an event (FTS documents and the literal text filter share it)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dsh_memory.sessionquery.js.text import JS_BLANKS, replace_surrogates
from dsh_memory.sessionquery.model.sessions import Event


class PayloadError(ValueError):
    """A payload has a shape from which the text cannot be taken; no search can cover it."""


def event_text(event: Event) -> str:
    """Return the text of an event, empty if the event is no document.

    Parts are stripped of JS blanks, empty ones dropped, the rest joined by newlines. Lone
    surrogates become U+FFFD.

    Raises:
        PayloadError: The payload's shape does not allow to take the text.
    """
    parts_of = TEXT_PARTS.get(event["type"])
    if parts_of is None:
        return ""
    try:
        text = parts_of(event["data"])
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise PayloadError(
            f"event {event['seq']} ({event['type']}) has a payload without readable text"
        ) from error
    return text if text.isascii() else replace_surrogates(text)


def _strip(value: Any) -> str:
    if value.__class__ is not str:
        raise TypeError
    return value.strip(JS_BLANKS)


def _content(blocks: Any) -> str:
    if blocks.__class__ is not list:
        raise TypeError
    parts: list[str] = []
    for block in blocks:
        if block.__class__ is not dict:
            if block is None:
                raise TypeError
            continue
        kind = block.get("type")
        if kind == "text":
            parts.append(_strip(block["text"]))
        elif kind == "tool-call":
            parts.append(_strip(block["name"]))
            parts.append(_strip(block["arguments"]))
    if len(parts) == 1:
        return parts[0]
    return "\n".join(filter(None, parts))


def _user_message(data: Any) -> str:
    return _content(data["content"])


def _assistant_message(data: Any) -> str:
    return _content(data["message"]["content"])


def _tool_result(data: Any) -> str:
    text = _content(data["message"]["content"])
    error = data.get("error")
    if error.__class__ is not dict:
        return text
    parts = [text]
    for key in ("name", "code"):
        part = error.get(key)
        if part is not None:
            parts.append(_strip(part))
    return "\n".join(filter(None, parts))


def _tool_call(data: Any) -> str:
    return "\n".join(filter(None, (_strip(data["name"]), _strip(data["arguments"]))))


def _todo_write(data: Any) -> str:
    todos = data["todos"]
    if todos.__class__ is not list:
        raise TypeError
    parts: list[str] = []
    for todo in todos:
        parts.append(_strip(todo["status"]))
        parts.append(_strip(todo["content"]))
    return "\n".join(filter(None, parts))


def _turn_end(data: Any) -> str:
    reason = data["reason"]
    if reason.__class__ is not dict:
        if reason is None:
            raise TypeError
        return ""
    kind = reason.get("kind")
    if kind == "error":
        message = _strip(reason["error"]["message"])
        return f"error\n{message}" if message else "error"
    return kind if kind in ("aborted", "max-tokens", "interrupted") else ""


TEXT_PARTS: Final[dict[str, Callable[[Any], str]]] = {
    "user/message": _user_message,
    "assistant/message": _assistant_message,
    "tool/result": _tool_result,
    "tool/call": _tool_call,
    "todo/write": _todo_write,
    "turn/end": _turn_end,
}
"""How to take the text of each event type that can have any."""

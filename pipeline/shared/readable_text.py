"""The text of an event as a reader sees it (document 000): not the text that search matches.

Only words that were said, calls of tools and labels of attachments appear; never reasoning,
streams, replayed or binary content, metadata or control payloads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsh_memory.sessionquery.js.text import replace_surrogates


def read_text(event: Mapping[str, Any]) -> str:
    """Return the readable text of `event`; empty for events without any.

    Of an event whose message (``data`` of a ``user/message``, else ``data.message``) has a content
    list: its text blocks, tool calls and attachment labels, joined by newlines. ``tool/call`` rows
    read like tool-call blocks. Lone surrogates become U+FFFD.
    """
    kind = event["type"]
    data = event.get("data")
    if not isinstance(data, Mapping):
        return ""
    message = data if kind == "user/message" else data.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        parts = [text for block in content if (text := _block_text(block)) is not None]
        return replace_surrogates("\n".join(parts))
    if kind == "tool/call":
        return replace_surrogates(_call_text(data))
    return ""


def _block_text(block: object) -> str | None:
    if not isinstance(block, Mapping):
        return None
    match block.get("type"):
        case "text":
            return _plain(block.get("text"))
        case "tool-call":
            return _call_text(block)
        case "file":
            attachment = block.get("attachment")
            name = attachment.get("name") if isinstance(attachment, Mapping) else None
            return f"[file: {'attachment' if name is None else _plain(name)}]"
        case "image":
            return "[image attachment]"
    return None


def _call_text(call: Mapping[str, Any]) -> str:
    return f"[tool call: {_plain(call.get('name'))}] {_plain(call.get('arguments'))}"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else ""

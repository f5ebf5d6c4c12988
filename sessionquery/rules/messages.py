"""Rules for the messages inside events, and for payloads that need no history to be judged.

How deep a payload is checked follows what the original refuses; blocks of unknown types are
allowed, and so are additional keys.
"""

from __future__ import annotations

import re
from typing import Any, Final

from dsh_memory.sessionquery.js.text import is_count

NOT_STARTED_TEXT: Final = (
    "The tool call was interrupted before the Harness recorded it as started. Retry it if it is "
    "still needed."
)
NOT_STARTED_ERROR: Final = ("ToolNotStartedError", "TOOL_NOT_STARTED")

TITLE_SOURCE: Final = "dsh-session-title-llm"

_ROLES: Final = {
    "system/message": "system",
    "developer/message": "developer",
    "user/message": "user",
    "assistant/message": "assistant",
    "tool/result": "tool",
}
_REQUIRED_SOURCES: Final = {
    "system/message": "system-prompt",
    "assistant/message": "model",
    "tool/result": "tool",
}
_TOOL_CHANGES: Final = frozenset(("tool-addition", "tool-removal"))
_SAFE_SEQ: Final = re.compile(r"0|[1-9][0-9]{0,15}")


class BodyError(ValueError):
    """The events cannot be a session: the log is corrupt."""


class MessageIdentityError(BodyError):
    """A message is not the one that its event promises; corruption in older logs as well.

    Other broken rules only mean that an older log cannot be migrated.
    """


def require(condition: bool, what: str) -> None:
    """Raise `BodyError` with `what` unless `condition` holds."""
    if not condition:
        raise BodyError(what)


def is_name(value: Any) -> bool:
    """Whether a value is text that is not empty."""
    return value.__class__ is str and value != ""


def check_source(source: Any) -> str:
    """Return the kind of a message source.

    Raises:
        BodyError: It has none, or that of an older generation.
    """
    kind = source.get("kind") if source.__class__ is dict else None
    if kind.__class__ is not str or kind == "" or kind == "plugin":
        raise BodyError("has a message without a proper source kind")
    return kind


def check_blocks(blocks: Any, *, developer: bool = False) -> None:
    """Refuse block types that this generation no longer has or that belong to developers."""
    if blocks.__class__ is not list:
        return
    for block in blocks:
        if block.__class__ is dict:
            kind = block.get("type")
            if kind == "text" or kind == "tool-call":
                continue
            if kind == "tool-result":
                raise BodyError("has a tool-result block inside a message")
            if not developer and kind.__class__ is str and kind in _TOOL_CHANGES:
                raise BodyError(f"has a {kind} block outside of a developer message")


def check_message(kind: str, message: Any) -> None:
    """Check the message of a surface event.

    Args:
        kind: The event's type.
        message: Its message.

    Raises:
        BodyError: It has no identity, a wrong role, source or content.
    """
    if message.__class__ is not dict:
        raise BodyError("has no message")
    source = check_source(message.get("source"))
    wanted = _REQUIRED_SOURCES.get(kind)
    if wanted is not None and source != wanted:
        raise MessageIdentityError(f"has a message of the source {source!r}")
    if kind == "assistant/message":
        model = message["source"]
        if not is_name(model.get("provider")) or not is_name(model.get("model")):
            raise MessageIdentityError("names no model")
    if not is_name(message.get("id")):
        raise MessageIdentityError("has no message id")
    if message.get("role") != _ROLES[kind]:
        raise MessageIdentityError(f"has the role {message.get('role')!r}")
    content = message.get("content")
    if content.__class__ is not list:
        raise BodyError("has no content list")
    check_blocks(content, developer=kind == "developer/message")
    if kind == "system/message":
        check_system_blocks(content)


def check_system_blocks(content: list[Any]) -> None:
    """Check the content of a system message; raises `BodyError`."""
    for block in content:
        require(isinstance(block, dict) and is_name(block.get("type")), "has an untyped block")
        if block["type"] == "text":
            require(block.get("text").__class__ is str, "has a text block without text")
        elif block["type"] == "image":
            attachment = block.get("attachment")
            require(
                isinstance(attachment, dict) and is_name(attachment.get("attachmentId")),
                "has an image without an attachment",
            )


def check_tool_message(data: dict[str, Any]) -> str:
    """Check what a tool result has beside its message's common parts; return the call's id."""
    message = data["message"]
    call_id = message.get("toolCallId")
    require(
        is_name(call_id) and call_id == message["source"].get("callId"),
        "has a tool call id that differs from its source",
    )
    if "isError" in message:
        require(message["isError"].__class__ is bool, "has an isError that is no boolean")
    if "error" in data:
        require(message.get("isError") is True, "has an error although it is no error result")
    return call_id  # type: ignore[no-any-return]


def is_not_started_repair(data: dict[str, Any], sources: Any, seq: int) -> bool:
    """Whether a result is one that repairs a call that was never started.

    A reader writes such results for an interrupted turn, a fork for a turn that it cuts.
    """
    message, error = data["message"], data.get("error")
    if (
        not isinstance(error, dict)
        or (error.get("name"), error.get("code")) != NOT_STARTED_ERROR
        or sources is not None
    ):
        return False
    identity = message["id"]
    if identity == f"forked-tool-result-{message['toolCallId']}-{seq}":
        return True
    prefix = f"interrupted-tool-result-{message['toolCallId']}-"
    return (
        identity.startswith(prefix)
        and _SAFE_SEQ.fullmatch(identity[len(prefix) :]) is not None
        and message["content"] == [{"type": "text", "text": NOT_STARTED_TEXT}]
    )


def check_message_list(messages: Any) -> None:
    """Check messages that are waiting or were sent elsewhere (inbox, title request)."""
    require(isinstance(messages, list), "has no list of messages")
    for message in messages:
        require(isinstance(message, dict), "has a message that is no object")
        check_source(message.get("source"))
        require(message.get("role") != "developer", "has a developer message")
        check_blocks(message.get("content"))


def check_request_header(data: Any) -> Any:
    """Check a request header; return the provider that it names."""
    header = data.get("header") if isinstance(data, dict) else None
    if not isinstance(header, dict):
        raise BodyError("has no header")
    require("system" not in header, "has a system prompt in its header")
    require(isinstance(header.get("config"), dict), "has no config")
    require(header.get("tools") != [], "has an empty tool list")
    require(header.get("adapterDefaults") != {}, "has empty adapter defaults")
    tools = header.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and "deferLoading" in tool:
            require(tool["deferLoading"] is True, "has a tool with a deferLoading that is not true")
    return header["config"].get("provider")


def check_catalog(data: Any) -> str:
    """Check an entry of the list of subagents; return the child's id."""
    require(isinstance(data, dict), "is no catalog entry")
    version, child, label = data.get("version"), data.get("childId"), data.get("label")
    known = version.__class__ is not bool and version in (0, 1)
    require(known and isinstance(child, str), "is no supported catalog entry")
    require(is_count(data.get("childCreatedAt")), "has no creation time of the child")
    if version == 0:
        mode = data.get("mode")
        require(mode in ("one-shot", "continuable"), f"has the mode {mode!r}")
        require("label" not in data or isinstance(label, str), "has a label that is no text")
        require(mode != "continuable" or isinstance(label, str), "has no label")
    return child  # type: ignore[no-any-return]

"""Generation 3 to 4: plugins lose their special place, tool results their wrapping.

Message sources of kind ``plugin`` become kinds of their own, a ``tool/result`` carries its content
directly, and event and block types that generation 4 does not know are marked ``plugin:``. Numbers
only shift where the end of an interrupted turn is inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dsh_memory.sessionquery.generations.context import LogContext
from dsh_memory.sessionquery.generations.known_types import GENERATION_3
from dsh_memory.sessionquery.generations.messages import BLOCK_TYPES
from dsh_memory.sessionquery.generations.problems import MigrationRefusedError
from dsh_memory.sessionquery.generations.renumber import Numbering
from dsh_memory.sessionquery.generations.restart import RestartWatch
from dsh_memory.sessionquery.generations.shapes import name
from dsh_memory.sessionquery.generations.values import Row

_PROMPT_PLUGIN = "@deepseek-ai/dsh-system-prompt"
_KEPT_NAMES = (
    *("agent-instructions", "session-reference", "team-message", "goal", "skill-invocation"),
    *("skill-catalog", "coordinator", "subagent-report", "subagent-settled", "webhook"),
    *("agent-message", "model-selection", "plan-mode", "time-context", "tmux-context"),
    *("user-approval", "repeat-tool-reminder", "tool-cordis", "cordis-host-runner", "tool-goal"),
    *("tool-jobs", "hooks-codex", "hooks-claude-code", "schedule", "dsh-session-title-llm"),
)
_SOURCE_KINDS = {
    "compact": "compact-checkpoint",
    "tools-code-mode": "ptc-mode",
    "tools-ptc": "ptc-mode",
    "dsh-compaction-basic": "compact-basic",
    **dict(zip(_KEPT_NAMES, _KEPT_NAMES, strict=True)),
}
_BLOCKS = frozenset(BLOCK_TYPES)
_RESULT_MESSAGE = frozenset({"role", "source", "content", "id"})
_RESULT_BLOCK = frozenset({"type", "toolCallId", "content", "isError"})


def migrate(rows: Iterable[Row], log: LogContext) -> Iterator[Row]:
    """Yield the rows of a generation 3 log as generation 4.

    Raises:
        MigrationRefusedError: An event type is unknown and not ignorable, a tool result is not
            wrapped as generation 3 does, or the log has a marker that its header denies.
    """
    numbers = Numbering(replace_ends=("startSeq", "endSeq"))
    # Logs of generations 0 and 1 had the same done to them two steps earlier.
    restart = RestartWatch() if log.generation >= 2 else None
    for row in rows:
        if restart is not None:
            missing = restart.missing_end(row)
            if missing is not None:
                yield numbers.insert("turn/end", row["time"], missing)
        yield numbers.place(_converted(row, log))


def _converted(row: Row, log: LogContext) -> Row:
    kind = row["type"]
    if kind not in GENERATION_3:
        if "ignorable" not in row:
            raise MigrationRefusedError(f"the event type {kind!r} at {row['seq']} is unknown")
        return {**row, "type": f"plugin:{kind}"}
    if kind == "session/end-seed" and "inherited" in row["data"] and not log.is_seeded:
        raise MigrationRefusedError("a session without copied rows has an inherited marker")
    change = _CHANGES.get(kind)
    data = row["data"]
    # Data that is no object is for the final check, which lets some types have it.
    return row if change is None or type(data) is not dict else {**row, "data": change(data)}


def _user_message(data: dict[str, Any]) -> dict[str, Any]:
    return _message(data)


def _wrapped_message(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "message": _message(data.get("message"))}


def _assistant_message(data: dict[str, Any]) -> dict[str, Any]:
    return _attempt(_wrapped_message(data))


def _attempt(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "stream": _stream(data["stream"])} if "stream" in data else data


def _message(message: Any) -> dict[str, Any]:
    if type(message) is not dict:
        raise MigrationRefusedError("an event has no message")
    content, source = message.get("content"), message.get("source")
    if type(source) is dict:
        kind = source.get("kind")
        if not name(kind):
            raise MigrationRefusedError("a message source has no kind")
        if kind == "plugin":
            message = {**message, "source": _plugin_source(source, message.get("role"))}
    blocks = _content(content)
    return message if blocks is content else {**message, "content": blocks}


def _plugin_source(source: dict[str, Any], role: Any) -> dict[str, Any]:
    plugin = source.get("plugin")
    if type(plugin) is not str:
        raise MigrationRefusedError("a message source names no plugin")
    if plugin == _PROMPT_PLUGIN:
        kind = "system-prompt" if role == "system" else "runtime-context"
    else:
        kind = _SOURCE_KINDS.get(plugin, f"plugin:{plugin}")
    kept = {key: value for key, value in source.items() if key not in ("kind", "plugin")}
    return {"kind": kind, **kept}


def _content(blocks: Any) -> list[Any]:
    """Mark the types of unknown blocks; returns `blocks` itself when there is none."""
    if type(blocks) is not list:
        raise MigrationRefusedError("a message has no list of blocks")
    return blocks if all(map(_is_kept, blocks)) else [_block(block) for block in blocks]


def _is_kept(block: Any) -> bool:
    kind = block.get("type") if type(block) is dict else None
    if type(kind) is not str:
        raise MigrationRefusedError("a content block has no type")
    return kind in _BLOCKS and kind != "tool-result"


def _block(block: Any) -> Any:
    if _is_kept(block):
        return block
    if block["type"] == "tool-result":
        return {**block, "content": _content(block.get("content"))}
    return {**block, "type": f"plugin:{block['type']}"}


def _stream(records: Any) -> Any:
    """Mark unknown block types in a stream; what is no list of records stays as it is."""
    if type(records) is list and any(map(_has_block, records)):
        return [_stream_record(record) if _has_block(record) else record for record in records]
    return records


def _has_block(record: Any) -> bool:
    chunk = record.get("chunk") if type(record) is dict else None
    return type(chunk) is dict and chunk.get("type") in ("block-start", "block-end")


def _stream_record(record: dict[str, Any]) -> dict[str, Any]:
    chunk = record["chunk"]
    if chunk["type"] == "block-end":
        block = chunk.get("block")
        return record if _is_kept(block) else {**record, "chunk": {**chunk, "block": _block(block)}}
    kind = chunk.get("blockType")
    if type(kind) is not str:
        raise MigrationRefusedError("a stream names no block type")
    if kind in _BLOCKS:
        return record
    return {**record, "chunk": {**chunk, "blockType": f"plugin:{kind}"}}


def _tool_result(data: dict[str, Any]) -> dict[str, Any]:
    message = data.get("message")
    content = message.get("content") if type(message) is dict else None
    if type(message) is not dict or type(content) is not list or len(content) != 1:
        raise MigrationRefusedError("a tool result does not hold one block")
    block, source = content[0], message.get("source")
    if (
        message.get("role") != "user"
        or not name(message.get("id"))
        or type(source) is not dict
        or source.get("kind") != "tool"
        or not name(source.get("callId"))
        or type(block) is not dict
        or block.get("type") != "tool-result"
        or block.get("toolCallId") != source.get("callId")
        or type(block.get("content")) is not list
        or any(type(b) is dict and b.get("type") == "tool-result" for b in block["content"])
    ):
        raise MigrationRefusedError("a tool result is not wrapped as in generation 3")
    unwrapped: dict[str, Any] = {
        "role": "tool",
        "source": source,
        "toolCallId": block["toolCallId"],
        "content": _content(block["content"]),
    }
    if "isError" in block:
        unwrapped["isError"] = block["isError"]
    unwrapped["id"] = message["id"]
    unwrapped.update(_extra(message, _RESULT_MESSAGE, "plugin:message:"))
    unwrapped.update(_extra(block, _RESULT_BLOCK, "plugin:result:"))
    return {**data, "message": unwrapped}


def _extra(value: dict[str, Any], known: frozenset[str], prefix: str) -> dict[str, Any]:
    return {f"{prefix}{key}": value[key] for key in value.keys() - known}


def _inbox(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "inserted": _messages(data.get("inserted"))}


def _title_request(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "messages": _messages(data.get("messages"))}


def _messages(messages: Any) -> Any:
    if type(messages) is not list:
        raise MigrationRefusedError("an event carries no list of messages")
    return [_message(message) for message in messages]


def _summary(data: dict[str, Any]) -> dict[str, Any]:
    return {
        **data,
        **{key: _content(data[key]) for key in ("summary", "rawOutput") if key in data},
    }


def _dispatch(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "content": _content(data["content"])} if "content" in data else data


def _request_header(data: dict[str, Any]) -> dict[str, Any]:
    header = data.get("header")
    tools = header.get("tools", []) if type(header) is dict else []
    if type(tools) is list and any(type(tool) is dict and "deferLoading" in tool for tool in tools):
        raise MigrationRefusedError("a tool defers its loading")
    return data


_CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "user/message": _user_message,
    "system/message": _wrapped_message,
    "assistant/message": _assistant_message,
    "assistant/attempt": _attempt,
    "tool/result": _tool_result,
    "agent/inbox/spliced": _inbox,
    "session/title-llm-request": _title_request,
    "compaction/summary": _summary,
    "tool/ptc-dispatch": _dispatch,
    "request/header": _request_header,
}

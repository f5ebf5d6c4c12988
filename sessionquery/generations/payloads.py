"""Which payloads the steps up to generation 3 let through (`OLDER` rules, "payload admission").

The old migrations know closed sets: a key, source, block or reason outside them is refused rather
than guessed at. Two strengths exist. The *plain* check (steps 0 to 1, and every generation-1 log)
looks at keys and at the values that later rows depend on; the *strict* check (step 2 to 3) also at
the envelope, content blocks and message sources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sessionquery.generations.problems import MigrationRefusedError
from sessionquery.generations.tables import TABLE_A
from sessionquery.generations.values import Keys, Row, is_name, keys
from sessionquery.jstext import is_count, is_safe_integer
from sessionquery.rows import SURFACE_TYPES

_ENVELOPE = keys("type seq time data | surfaceOp sourceEventSeqs ignorable")
_OLD_REPLACE = keys("op start end")
_MESSAGE = keys("id role source content")

_ROLES = {"user/message": "user", "assistant/message": "assistant", "tool/result": "user"}

_BLOCKS: dict[str, Keys] = {
    "text": keys("type text"),
    "reasoning": keys("type text"),
    "image": keys("type attachment"),
    "file": keys("type attachment"),
    "tool-call": keys("type id name arguments"),
    "tool-result": keys("type toolCallId content | isError"),
}
_FILE_ATTACHMENT = keys("attachmentId name bytes")

_SOURCES: dict[str, Keys] = {
    "user": keys("kind | rpcId clientTimeZone"),
    "plugin": keys("kind plugin | form sections summary"),
    "model": keys("kind provider model | replayState"),
    "tool": keys("kind callId"),
}
_CHECKPOINT_SOURCE = keys("kind plugin compactionId | sourceCommandId form sections summary")
KNOWN_SOURCES = keys(
    "agent-instructions session-reference team-message goal skill-invocation skill-catalog"
    " coordinator subagent-report subagent-settled webhook agent-message model-selection"
    " plan-mode time-context tmux-context user-approval repeat-tool-reminder tool-cordis"
    " cordis-host-runner tool-goal tool-jobs hooks-codex hooks-claude-code schedule"
    " dsh-session-title-llm"
).required
"""Source kinds (and plugin names) that kept their name in generation 4."""

_PLAIN_REASONS = frozenset({"completed", "blocked", "max-tokens", "interrupted"})
_ABORT_KINDS = frozenset({"user", "parent", "disposed", "legacy"})
_END_ERROR = keys("message code | status providerRetryAfterMs requestId")
_HEADER = keys("config | adapterDefaults system tools")
_CONFIG = keys("provider model | reasoningEffort temperature maxTokens stop")
_HEADER_REASONS = frozenset({"initial", "resume", "change", "series"})
_TODO_STATES = frozenset({"pending", "in_progress", "completed"})


def check_envelope(row: Row) -> None:
    """Refuse a row whose own keys are not those of an event of generation 0 or 1."""
    if (
        not _ENVELOPE.fit(row)
        or type(row["type"]) is not str
        or type(row["data"]) is not dict
        or not is_safe_integer(row["time"])
        or row.get("ignorable", True) is not True
    ):
        raise MigrationRefusedError(f"the row at {row.get('seq')} is no event")


def check_payload(row: Row, generation: int) -> None:
    """The plain check of one event of `generation` 0 or 1, envelope included."""
    check_envelope(row)
    _check_known(row, generation)
    check_value = _VALUES.get(row["type"])
    if check_value is not None and not check_value(row["data"]):
        raise _malformed(row)
    if row["type"] == "subagent/descriptor" and generation == 0 and row["data"]["version"] != 3:
        raise _malformed(row)


def check_strict(row: Row) -> None:
    """The strict check of one event of generation 2."""
    _check_known(row, 2)
    check_value = _VALUES.get(row["type"])
    if check_value is not None and not check_value(row["data"]):
        raise _malformed(row)
    _check_surface_keys(row)
    kind = row["type"]
    if kind in _ROLES:
        message = row["data"] if kind == "user/message" else row["data"]["message"]
        if not _are_strict_blocks(message["content"]) or not _is_strict_source(message["source"]):
            raise _malformed(row)


def _check_known(row: Row, generation: int) -> None:
    kind = row["type"]
    table = TABLE_A[generation]
    if kind not in table:
        raise MigrationRefusedError(f"the event type {kind!r} at {row['seq']} is unknown")
    admitted = table[kind]
    if admitted is not None and not admitted.fit(row["data"]):
        raise _malformed(row)


def _malformed(row: Row) -> MigrationRefusedError:
    return MigrationRefusedError(f"the data of {row['type']} at {row['seq']} is malformed")


def _check_surface_keys(row: Row) -> None:
    kind = row["type"]
    if kind not in SURFACE_TYPES:
        if "surfaceOp" in row or "sourceEventSeqs" in row:
            raise MigrationRefusedError(f"{kind} at {row['seq']} is outside the surface")
        return
    op = row.get("surfaceOp")
    if op != "append" and not (_OLD_REPLACE.fit(op) and op["op"] == "replace"):
        raise MigrationRefusedError(f"{kind} at {row['seq']} has no proper surfaceOp")
    if "sourceEventSeqs" in row and (kind == "assistant/message" or not row["sourceEventSeqs"]):
        raise MigrationRefusedError(f"{kind} at {row['seq']} has no proper sourceEventSeqs")


# Values: one predicate a type, on data whose keys already fit.


def _is_message(message: Any, role: str) -> bool:
    return (
        _MESSAGE.fit(message)
        and is_name(message["id"])
        and message["role"] == role
        and type(message["content"]) is list
        and type(message["source"]) is dict
        and is_name(message["source"].get("kind"))
    )


def _has_place(data: dict[str, Any]) -> bool:
    return is_count(data["turn"]) and is_count(data["step"])


def _turn_start(data: dict[str, Any]) -> bool:
    return is_count(data["turn"]) and data["turn"] >= 1


def _turn_end(data: dict[str, Any]) -> bool:
    return _turn_start(data) and _is_reason(data["reason"])


def _is_reason(reason: Any) -> bool:
    if type(reason) is not dict or not is_name(reason.get("kind")):
        return False
    kind = reason["kind"]
    if kind in _PLAIN_REASONS:
        return len(reason) == 1
    if kind == "aborted":
        return set(reason) == {"kind", "reason"} and _is_abort(reason["reason"])
    if kind == "error":
        return set(reason) == {"kind", "error"} and _is_end_error(reason["error"])
    return True


def _is_abort(cause: Any) -> bool:
    if type(cause) is not dict:
        return False
    if cause.get("kind") == "hook":
        return set(cause) == {"kind", "reason"} and type(cause["reason"]) is str
    return set(cause) == {"kind"} and cause["kind"] in _ABORT_KINDS


def _is_end_error(error: Any) -> bool:
    return _END_ERROR.fit(error) and type(error["message"]) is str and is_name(error["code"])


def _request_header(data: dict[str, Any]) -> bool:
    header = data["header"]
    return (
        _HEADER.fit(header)
        and _CONFIG.fit(header["config"])
        and data["reason"] in _HEADER_REASONS
        and type(header.get("system", "")) is str
        and type(header.get("tools", [])) is list
    )


def _todo_write(data: dict[str, Any]) -> bool:
    todos = data["todos"]
    return type(todos) is list and all(
        type(todo) is dict
        and type(todo.get("content")) is str
        and todo.get("status") in _TODO_STATES
        for todo in todos
    )


def _end_seed(data: dict[str, Any]) -> bool:
    return data.get("inherited", True) is True


_VALUES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "turn/start": _turn_start,
    "turn/end": _turn_end,
    "step/start": _has_place,
    "step/end": _has_place,
    "request/header": _request_header,
    "todo/write": _todo_write,
    "session/end-seed": _end_seed,
    "user/message": lambda data: _is_message(data, "user"),
    "assistant/message": lambda data: (
        _has_place(data) and _is_message(data["message"], "assistant")
    ),
    "tool/result": lambda data: _has_place(data) and _is_message(data["message"], "user"),
}


def _are_strict_blocks(blocks: Any) -> bool:
    return type(blocks) is list and all(_is_strict_block(block) for block in blocks)


def _is_strict_block(block: Any) -> bool:
    kind = block.get("type") if type(block) is dict else None
    if type(kind) is not str or kind not in _BLOCKS or not _BLOCKS[kind].fit(block):
        return False
    if kind == "tool-result":
        return _are_strict_blocks(block["content"])
    if kind == "file":
        return _FILE_ATTACHMENT.fit(block["attachment"])
    return True


def _is_strict_source(source: dict[str, Any]) -> bool:
    kind = source["kind"]
    if kind == "plugin" and source.get("plugin") == "compact":
        return _CHECKPOINT_SOURCE.fit(source) and is_name(source["compactionId"])
    if kind in _SOURCES:
        return _SOURCES[kind].fit(source)
    return kind in KNOWN_SOURCES

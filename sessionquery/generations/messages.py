"""Shapes of the messages of generations 0 to 2: blocks, sources, stream records."""

from __future__ import annotations

from typing import Any, Final

from dsh_memory.sessionquery.generations.shapes import (
    Check,
    Maybe,
    Shape,
    anything,
    boolean,
    count,
    list_of,
    mapping,
    name,
    one_of,
    positive,
    text,
    variants,
)

_IMAGE: Final = Shape(
    attachmentId=name,
    mediaType=one_of("image/png", "image/jpeg", "image/webp", "image/gif"),
    bytes=count,
    width=count,
    height=count,
    name=Maybe(text),
)
_BLOCKS: Final[dict[str, Check]] = {
    "text": Shape(type=text, text=text),
    "reasoning": Shape(type=text, text=text),
    "image": Shape(type=text, attachment=_IMAGE),
    "file": Shape(type=text, attachment=Shape(attachmentId=name, name=text, bytes=count)),
    "tool-call": Shape(type=text, id=name, name=name, arguments=text),
}
BLOCK_TYPES: Final = (*_BLOCKS, "tool-result")
_known_block: Final = variants("type", _BLOCKS)
blocks: Final = list_of(_known_block)


def block(value: Any) -> bool:
    """A content block that is right if its type is known."""
    kind = value.get("type") if value.__class__ is dict else None
    return name(kind) and (kind not in _BLOCKS or _known_block(value))


_RESULT: Final = Shape(
    type=one_of("tool-result"), toolCallId=name, content=blocks, isError=Maybe(boolean)
)

_SECTION: Final = Shape(name=name, text=text)
_FORMS: Final = one_of("instructions", "catalog", "snapshot", "notice", "relay", "recall")
_PLUGIN: Final = Shape(
    kind=text,
    plugin=name,
    form=Maybe(_FORMS),
    sections=Maybe(list_of(_SECTION)),
    summary=Maybe(text),
)
_CHECKPOINT: Final = Shape(kind=text, plugin=name, compactionId=name, sourceCommandId=Maybe(name))


def plugin_source(source: Any) -> bool:
    """A message source of the kind ``plugin``; what else it has depends on its form."""
    if source.__class__ is not dict or source.get("kind") != "plugin":
        return False
    if source.get("plugin") == "compact":
        return bool(_CHECKPOINT(source))
    if not _PLUGIN(source):
        return False
    if "form" not in source:
        return True
    form = source["form"]
    wants_sections, wants_summary = form == "snapshot", form == "notice"
    return ("sections" in source, "summary" in source) == (wants_sections, wants_summary)


_RELAY: Final = Shape(kind=text, form=one_of("relay"), senderSessionId=name)
_GOAL_STATE: Final = Shape(
    id=name,
    revision=positive,
    objective=name,
    phase=one_of("active", "paused", "blocked", "complete"),
    maxGoalRounds=positive,
)
_GOAL_KEPT: Final = Shape(
    kind=one_of("goal/change"),
    version=one_of(1),
    operation=one_of("create", "edit", "pause", "resume", "complete", "block"),
    goal=_GOAL_STATE,
    roundsStarted=count,
    createdAt=count,
    updatedAt=count,
)
_GOAL_CLEARED: Final = Shape(
    kind=one_of("goal/change"),
    version=one_of(1),
    operation=one_of("clear"),
    cleared=Shape(id=name, revision=positive),
    clearedAt=count,
)


def goal_change(data: Any) -> bool:
    """The data of a ``goal/change`` event, which a message source may carry as well."""
    return _GOAL_KEPT(data) or _GOAL_CLEARED(data)


_GOAL: Final = Shape(
    kind=text, goalId=name, revision=positive, round=count, change=Maybe(goal_change)
)


def _goal(source: Any) -> bool:
    return _GOAL(source) and ("change" in source or source["round"] >= 1)


_MODEL: Final = Shape(kind=one_of("model"), provider=name, model=name, replayState=Maybe(anything))
_TOOL: Final = Shape(kind=one_of("tool"), callId=name)
_SOURCES: Final[dict[str, Check]] = {
    "user": Shape(kind=text, rpcId=Maybe(name), clientTimeZone=Maybe(name)),
    "plugin": plugin_source,
    "model": _MODEL,
    "tool": _TOOL,
    "goal": _goal,
    "agent-instructions": Shape(kind=text, form=one_of("instructions"), changes=list_of(anything)),
    "session-reference": Shape(
        kind=text, form=one_of("recall"), version=one_of(1), references=list_of(anything)
    ),
    "team-message": Shape(kind=text, teamId=name, messageId=name, senderId=name, senderName=text),
    "skill-invocation": Shape(kind=text, name=name, form=one_of("instructions")),
    "skill-catalog": Shape(kind=text, form=one_of("catalog"), entries=list_of(anything)),
    "coordinator": _RELAY,
    "subagent-report": _RELAY,
    "agent-message": _RELAY,
    "subagent-settled": Shape(kind=text, form=one_of("notice"), summary=text, senderSessionId=name),
    "webhook": Shape(
        kind=text,
        provider=name,
        source=name,
        deliveryId=name,
        ruleId=name,
        form=one_of("notice"),
        summary=text,
    ),
}
source: Final = variants("kind", _SOURCES)


def message(role: Check, source: Check = source, content: Check = blocks) -> Shape:
    """The shape of a message with these parts."""
    return Shape(id=name, role=role, source=source, content=content)


user_message: Final = message(one_of("user"))
assistant_message: Final = message(one_of("assistant"), _MODEL)
title_message: Final = message(one_of("system", "user", "assistant"))
_result_message: Final = message(one_of("user"), _TOOL, list_of(_RESULT, least=1, most=1))


def result_message(value: Any) -> bool:
    """A tool's result, wrapped into one block that names the same call as the source."""
    return _result_message(value) and value["content"][0]["toolCallId"] == value["source"]["callId"]


usage: Final = Shape(
    inputTokens=count,
    outputTokens=count,
    totalTokens=Maybe(count),
    cacheReadTokens=Maybe(count),
    cacheWriteTokens=Maybe(count),
    reasoningTokens=Maybe(count),
)


def _names_block(chunk: Any) -> bool:
    return chunk.get("blockType") in BLOCK_TYPES


def _holds_block(chunk: Any) -> bool:
    return _known_block(chunk.get("block"))


def _text_delta(chunk: Any) -> bool:
    return count(chunk.get("index")) and text(chunk.get("text"))


def _call_delta(chunk: Any) -> bool:
    return (
        count(chunk.get("index"))
        and text(chunk.get("id"))
        and text(chunk.get("name", ""))
        and text(chunk.get("argumentsDelta"))
    )


_CHUNKS: Final[dict[str, Check]] = {
    "text-delta": _text_delta,
    "reasoning-delta": _text_delta,
    "tool-call-delta": _call_delta,
    "block-start": anything,
    "block-end": anything,
    "usage": anything,
    "finish": anything,
}
known_chunk: Final = variants("type", _CHUNKS)
"""A chunk of a streamed answer as generations 0 and 1 log it; its block is judged in the stream."""


def _stream_record(record: Any) -> bool:
    """Of a stream only the blocks that it names matter, because their types are closed."""
    if record.__class__ is not dict or record.get("type") != "chunk":
        return mapping(record)
    chunk = record.get("chunk")
    if chunk.__class__ is not dict:
        return False
    kind = chunk.get("type")
    if kind == "block-start":
        return _names_block(chunk)
    return kind != "block-end" or _holds_block(chunk)


stream: Final = list_of(_stream_record)

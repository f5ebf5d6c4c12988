"""The tool calls of one step: announced by an assistant message, recorded, answered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson
from dsh_memory.sessionquery.model.sessions import Event
from dsh_memory.sessionquery.rules.messages import (
    BodyError,
    check_tool_message,
    is_not_started_repair,
    require,
)

_USUAL_DATA: Final = frozenset(("turn", "step", "message"))
_USUAL_MESSAGE: Final = frozenset(("role", "toolCallId", "isError", "content", "source", "id"))
_USUAL_SOURCE: Final = frozenset(("kind", "callId"))


@dataclass(slots=True)
class ToolCallState:
    """A tool call that an assistant message of the open step announced."""

    id: str
    name: Any
    arguments: Any
    called_at: int | None = None
    answered: bool = False


class ToolCalls:
    """Each call is announced once, recorded at most once as announced, and answered once."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCallState] = {}
        self._results: dict[int, Hashable] = {}

    def forget(self) -> None:
        """Leave the calls of a step behind."""
        self._calls = {}

    def unanswered(self) -> Iterator[ToolCallState]:
        """Yield the calls without a result, in order of appearance."""
        return (call for call in self._calls.values() if not call.answered)

    def announce(self, content: list[dict[str, Any]]) -> None:
        """Take in the blocks of an assistant message."""
        for block in content:
            if block.get("type") == "tool-call":
                identity = block.get("id")
                if not isinstance(identity, str) or not identity:
                    raise BodyError("announces a tool call without an id")
                require(identity not in self._calls, f"announces the tool call {identity!r} again")
                self._calls[identity] = ToolCallState(
                    identity, block.get("name"), block.get("arguments")
                )

    def record(self, event: Event) -> None:
        """Take in a ``tool/call``."""
        data = event["data"]
        call = self._calls.get(data["callId"])
        if (
            call is None
            or call.called_at is not None
            or call.answered
            or call.name != data.get("name")
            or call.arguments != data.get("arguments")
        ):
            raise BodyError("does not match one announced tool call")
        call.called_at = event["seq"]

    def answer(self, event: Event) -> None:
        """Take in a ``tool/result`` that is appended."""
        data = event["data"]
        call_id = check_tool_message(data)
        call = self._calls.get(call_id)
        if call is None or call.answered:
            raise BodyError("answers no open tool call")
        if call.called_at is None:
            require(
                is_not_started_repair(data, event.get("sourceEventSeqs"), event["seq"]),
                "answers a tool call that was not started",
            )
        call.answered = True
        self._results[event["seq"]] = _apart_from_content(data)

    def replace(self, event: Event) -> str | None:
        """Take in a ``tool/result`` that replaced another.

        Returns:
            What is wrong with the replacement: it must be one of a single tool result, and have
            other content at most.
        """
        data = event["data"]
        check_tool_message(data)
        shown = self._results[event["seq"]] = _apart_from_content(data)
        operation = event["surfaceOp"]
        if operation["startSeq"] != operation["endSeq"]:
            return "replaces more than one event by a tool result"
        replaced = self._results.get(operation["startSeq"])
        if replaced is None:
            return "replaces something else by a tool result"
        return None if replaced == shown else "replaces a tool result by more than other content"


def _apart_from_content(data: dict[str, Any]) -> Hashable:
    """Return what two tool results have in common if they differ in their content only."""
    message = data["message"]
    source = message["source"]
    key = (
        data.get("turn"),
        data.get("step"),
        message["toolCallId"],
        message["id"],
        message.get("isError"),
    )
    if (
        data.keys() == _USUAL_DATA
        and message.keys() == _USUAL_MESSAGE
        and source.keys() == _USUAL_SOURCE
    ):
        return key
    rest = {
        **{name: value for name, value in data.items() if name not in ("turn", "step", "message")},
        "message": {name: value for name, value in message.items() if name != "content"},
    }
    try:
        text = orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # A lone surrogate, or a number beyond 64 bits.
        text = json.dumps(rest, sort_keys=True).encode("ascii")
    return (*key, hashlib.blake2b(text, digest_size=16).digest())

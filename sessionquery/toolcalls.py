"""The tool calls of one step: announced by an assistant message, recorded, answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sessionquery.messagerules import (
    BodyError,
    check_tool_message,
    is_not_started_repair,
    require,
)
from sessionquery.model import Event


@dataclass(slots=True)
class ToolCallState:
    """A tool call that an assistant message of the open step announced."""

    id: str
    name: Any
    arguments: Any
    called_at: int | None = None
    answered: bool = False


class SurfaceError(BodyError):
    """A replacement changes what it must not; exact reads have a code of their own for it."""


class ToolCalls:
    """Each call is announced once, recorded at most once as announced, and answered once."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCallState] = {}
        self._results: dict[int, tuple[Any, Any, str]] = {}

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
        self._results[event["seq"]] = (data.get("turn"), data.get("step"), call_id)

    def replace(self, event: Event) -> None:
        """Take in a ``tool/result`` that replaced another; it may only have other content.

        Raises:
            SurfaceError: It replaced something else, or more of a result than its content.
        """
        data = event["data"]
        shown = (data.get("turn"), data.get("step"), check_tool_message(data))
        if self._results.get(event["surfaceOp"]["startSeq"]) != shown:
            raise SurfaceError("replaces a tool result by more than other content")
        self._results[event["seq"]] = shown

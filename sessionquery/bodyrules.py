"""Rules over the events of one log: turns, steps, tool calls, compactions, surface, titles.

`BodyRules` sees the events in order and remembers only what later events are checked against. It
also folds the surface (which events are the model's current history). Payloads of log-only events
are otherwise not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sessionquery.jstext import is_count
from sessionquery.model import Event
from sessionquery.rows import KNOWN_TYPES, SURFACE_TYPES

_ROLES: Final = {
    "system/message": "system",
    "developer/message": "developer",
    "user/message": "user",
    "assistant/message": "assistant",
    "tool/result": "tool",
}
_LOG_ONLY_TYPES: Final = KNOWN_TYPES - SURFACE_TYPES

LOG_ONLY, CURRENT, SHADOWED = 0, 1, 2


class BodyError(ValueError):
    """The events cannot be a session: the log is corrupt."""


@dataclass(slots=True)
class ToolCallState:
    """A tool call that an assistant message of the open step announced."""

    id: str
    name: Any
    arguments: Any
    called_at: int | None = None
    answered: bool = False


@dataclass(slots=True)
class _Compaction:
    id: Any
    turn: Any
    summary: Event | None = None
    replaced: bool = False


class BodyRules:
    """The state of a log after the events seen so far.

    Args:
        is_seeded: Of the header; a seeded log must have an ``inherited`` marker, another none.

    Attributes:
        open_turn: Number of the open turn, 0 between turns.
        open_step: Number of the open step, 0 outside.
        surface: Numbers of the current surface events in list order.
        replaced_by: For each shadowed event the event that replaced it.
        inherited_event_count: Number of the last ``inherited`` marker, 0 without one.
    """

    def __init__(self, *, is_seeded: bool) -> None:
        self.open_turn = 0
        self.open_step = 0
        self.surface: list[int] = []
        self.replaced_by: dict[int, int] = {}
        self.inherited_event_count = 0
        self._is_seeded = is_seeded
        self._marked = False
        self._last_turn = 0
        self._last_step = 0
        self._head: int | None = None
        self._calls: dict[str, ToolCallState] = {}
        self._commands: set[str] = set()
        self._people: set[int] = set()
        self._compaction: _Compaction | None = None
        self._checks: dict[str, Callable[[Event, Any], None]] = {
            "turn/start": self._turn_start,
            "turn/end": self._turn_end,
            "step/start": self._step_start,
            "step/end": self._step_end,
            "system/message": self._system_message,
            "developer/message": self._surface_event,
            "user/message": self._user_message,
            "assistant/message": self._assistant_message,
            "assistant/attempt": self._in_step,
            "tool/call": self._tool_call,
            "tool/result": self._tool_result,
            "request/header": self._in_turn,
            "request/context": self._in_turn,
            "tool/ptc-dispatch": self._in_turn,
            "tool/ptc-dispatch-start": self._in_turn,
            "command/run": self._command_run,
            "command/done": self._command_done,
            "compaction/start": self._compaction_start,
            "compaction/summary": self._compaction_summary,
            "compaction/end": self._compaction_end,
            "session/title": self._title,
            "session/end-seed": self._end_seed,
        }

    def accept(self, event: Event) -> None:
        """Check the next event and take it into the state.

        Args:
            event: With a normalized envelope (`rows.normalize_row`) and a known or ignorable type.

        Raises:
            BodyError: The event contradicts the earlier ones.
        """
        kind = event["type"]
        check = self._checks.get(kind)
        try:
            if len(event) > 4 and kind in _LOG_ONLY_TYPES:
                self._no_surface_keys(event)
            if check is not None:
                check(event, event["data"])
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            raise BodyError(f"{_place(event)} has a payload of the wrong shape") from error

    def finish(self) -> None:
        """Check what can only be known at the end of the log.

        Raises:
            BodyError: The seed marker does not agree with the header.
        """
        if self._is_seeded and not self._marked:
            raise BodyError("the header says seeded, but there is no inherited end-seed marker")

    def unanswered_calls(self) -> Iterator[ToolCallState]:
        """Yield the open step's tool calls without a result, in order of appearance."""
        return (call for call in self._calls.values() if not call.answered)

    def classification(self, count: int) -> bytearray:
        """Return one byte an event (`LOG_ONLY`, `CURRENT`, `SHADOWED`) for events 0..count-1."""
        out = bytearray(count)
        for seq in self.surface:
            out[seq] = CURRENT
        for seq in self.replaced_by:
            out[seq] = SHADOWED
        return out

    # turns and steps

    def _turn_start(self, event: Event, data: Any) -> None:
        if self._compaction is not None:
            raise BodyError(f"{_place(event)} crosses an open compaction")
        if self.open_turn or not _same(data["turn"], self._last_turn + 1):
            raise BodyError(f"{_place(event)} does not open turn {self._last_turn + 1}")
        self.open_turn = self._last_turn = self._last_turn + 1
        self._last_step = 0
        self._calls = {}

    def _turn_end(self, event: Event, data: Any) -> None:
        if self._compaction is not None:
            raise BodyError(f"{_place(event)} crosses an open compaction")
        if not self.open_turn or self.open_step or not _same(data["turn"], self.open_turn):
            raise BodyError(f"{_place(event)} does not end the open turn")
        self.open_turn = 0
        self._calls = {}

    def _step_start(self, event: Event, data: Any) -> None:
        if (
            not self.open_turn
            or self.open_step
            or not _same(data["turn"], self.open_turn)
            or not _same(data["step"], self._last_step + 1)
        ):
            raise BodyError(f"{_place(event)} does not open the next step of the open turn")
        self.open_step = self._last_step = self._last_step + 1
        self._calls = {}

    def _step_end(self, event: Event, data: Any) -> None:
        self._in_step(event, data)
        for call in self._calls.values():
            if not call.answered:
                raise BodyError(f"{_place(event)} ends a step with tool call {call.id!r} open")
        self.open_step = 0
        self._calls = {}

    def _in_step(self, event: Event, data: Any) -> None:
        if (
            not self.open_step
            or not _same(data["turn"], self.open_turn)
            or not _same(data["step"], self.open_step)
        ):
            raise BodyError(f"{_place(event)} does not belong to the open turn and step")

    def _in_turn(self, event: Event, data: Any) -> None:
        if not self.open_turn:
            raise BodyError(f"{_place(event)} stands outside of any turn")

    # surface

    def _no_surface_keys(self, event: Event) -> None:
        if "surfaceOp" in event or "sourceEventSeqs" in event:
            raise BodyError(f"{_place(event)} is log-only but has surface keys")

    def _message(self, event: Event, message: Any) -> None:
        identity = message["id"]
        if identity.__class__ is not str or not identity:
            raise BodyError(f"{_place(event)} has no message id")
        if message["role"] != _ROLES[event["type"]]:
            raise BodyError(f"{_place(event)} has the role {message['role']!r}")
        if message["content"].__class__ is not list:
            raise BodyError(f"{_place(event)} has no content list")

    def _fold(self, event: Event) -> None:
        operation = event["surfaceOp"]
        seq = event["seq"]
        if operation == "append":
            if "sourceEventSeqs" in event and not event["sourceEventSeqs"]:
                raise BodyError(f"{_place(event)} has an empty source list")
            self.surface.append(seq)
            return
        if len(operation) != 3 or operation["op"] != "replace":
            raise BodyError(f"{_place(event)} has an unusable surfaceOp")
        surface = self.surface
        try:
            start = surface.index(operation["startSeq"])
            end = surface.index(operation["endSeq"], start)
        except ValueError:
            raise BodyError(f"{_place(event)} replaces what is not on the surface") from None
        shadowed = surface[start : end + 1]
        sources = set(event["sourceEventSeqs"])
        if not sources.issuperset(shadowed):
            raise BodyError(f"{_place(event)} does not cite every event that it replaces")
        if self._head in shadowed:
            if event["type"] != "system/message" or len(shadowed) > 1:
                raise BodyError(f"{_place(event)} replaces the system message at the head")
            self._head = seq
        for old in shadowed:
            self.replaced_by[old] = seq
        surface[start : end + 1] = [seq]

    def _surface_event(self, event: Event, data: Any) -> None:
        self._message(event, data["message"])
        self._fold(event)

    def _system_message(self, event: Event, data: Any) -> None:
        self._in_step(event, data)
        self._message(event, data["message"])
        if self._head is None and event["surfaceOp"] == "append":
            self._head = event["seq"]
        self._fold(event)

    def _user_message(self, event: Event, data: Any) -> None:
        self._message(event, data)
        self._fold(event)
        if data["source"]["kind"] == "user":
            self._people.add(event["seq"])

    def _assistant_message(self, event: Event, data: Any) -> None:
        self._in_step(event, data)
        message = data["message"]
        self._message(event, message)
        for block in message["content"]:
            if block["type"] == "tool-call":
                identity = block["id"]
                if identity in self._calls:
                    raise BodyError(f"{_place(event)} announces tool call {identity!r} again")
                self._calls[identity] = ToolCallState(identity, block["name"], block["arguments"])
        self._fold(event)

    # tool calls

    def _tool_call(self, event: Event, data: Any) -> None:
        self._in_step(event, data)
        call = self._calls.get(data["callId"])
        if (
            call is None
            or call.called_at is not None
            or call.answered
            or call.name != data["name"]
            or call.arguments != data["arguments"]
        ):
            raise BodyError(f"{_place(event)} does not match one announced tool call")
        call.called_at = event["seq"]

    def _tool_result(self, event: Event, data: Any) -> None:
        message = data["message"]
        self._message(event, message)
        if event["surfaceOp"] == "append":
            self._in_step(event, data)
            call = self._calls.get(message["toolCallId"])
            if call is None or call.answered:
                raise BodyError(f"{_place(event)} answers no open tool call")
            if call.called_at is None and data["error"]["code"] != "TOOL_NOT_STARTED":
                raise BodyError(f"{_place(event)} answers a tool call that was not started")
            call.answered = True
        self._fold(event)

    # commands

    def _command_run(self, event: Event, data: Any) -> None:
        self._commands.add(data["commandId"])

    def _command_done(self, event: Event, data: Any) -> None:
        if data["commandId"] not in self._commands:
            raise BodyError(f"{_place(event)} has no command/run before it")

    # compaction

    def _compaction_start(self, event: Event, data: Any) -> None:
        if self._compaction is not None:
            raise BodyError(f"{_place(event)} overlaps another compaction")
        self._compaction = _Compaction(data["compactionId"], data["turn"])

    def _open_compaction(self, event: Event, data: Any) -> _Compaction:
        compaction = self._compaction
        if compaction is None or compaction.id != data["compactionId"]:
            raise BodyError(f"{_place(event)} does not belong to the open compaction")
        return compaction

    def _compaction_summary(self, event: Event, data: Any) -> None:
        compaction = self._open_compaction(event, data)
        shadowed = data["shadowedSeqs"]
        if not shadowed:
            raise BodyError(f"{_place(event)} shadows nothing")
        try:
            start = self.surface.index(shadowed[0])
        except ValueError:
            start = -1
        if start < 0 or self.surface[start : start + len(shadowed)] != shadowed:
            raise BodyError(f"{_place(event)} shadows what is not a run of the surface")
        if self._head in shadowed:
            raise BodyError(f"{_place(event)} shadows the system message at the head")
        compaction.summary = event

    def _compaction_end(self, event: Event, data: Any) -> None:
        self._open_compaction(event, data)
        self._compaction = None

    # titles and seeds

    def _title(self, event: Event, data: Any) -> None:
        cited = data["messageSeqs"]
        if (not cited) != (data["source"]["kind"] == "user"):
            raise BodyError(f"{_place(event)} cites messages although its source is a person")
        if len(set(cited)) != len(cited) or not all(
            is_count(seq) and seq in self._people for seq in cited
        ):
            raise BodyError(f"{_place(event)} cites what is not an earlier message of a person")

    def _end_seed(self, event: Event, data: Any) -> None:
        self._compaction = None
        if data.get("inherited") is True:
            if not self._is_seeded:
                raise BodyError(f"{_place(event)} is an inherited marker in an unseeded session")
            self._marked = True
            self.inherited_event_count = event["seq"]


def _same(value: Any, number: int) -> bool:
    return value == number and value is not True


def _place(event: Event) -> str:
    return f"event {event['seq']} ({event['type']})"

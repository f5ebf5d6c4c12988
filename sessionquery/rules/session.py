"""Rules over the events of one log: turns, steps, tool calls, surface, titles, seeds.

`SessionValidator` sees the events in order and remembers only what later events are checked
against. It also folds the surface (which events are the model's current history).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from dsh_memory.sessionquery.disk.names import CURRENT_GENERATION
from dsh_memory.sessionquery.errors import INVALID_SURFACE, SessionQueryError
from dsh_memory.sessionquery.js.text import is_count
from dsh_memory.sessionquery.model.event_types import KNOWN_TYPES, SURFACE_TYPES
from dsh_memory.sessionquery.model.sessions import Event
from dsh_memory.sessionquery.rules.chains import (
    CompactionRules,
    DispatchRules,
    RetryRules,
    check_shadowed,
    same_number,
)
from dsh_memory.sessionquery.rules.citations import CommandRules, TitleRules
from dsh_memory.sessionquery.rules.messages import (
    BodyError,
    MessageIdentityError,
    check_catalog,
    check_message,
    check_message_list,
    check_request_header,
    is_name,
    require,
)
from dsh_memory.sessionquery.rules.surface import SurfaceFold
from dsh_memory.sessionquery.rules.tool_calls import ToolCalls, ToolCallState

__all__ = ["BodyError", "SessionValidator"]

_LOG_ONLY_TYPES: Final = KNOWN_TYPES - SURFACE_TYPES


class SessionValidator:
    """The state of a log after the events seen so far.

    Args:
        session_id: Of the header.
        is_seeded: Of the header; a seeded log must have an ``inherited`` marker, another none.
        is_migrated: The events come from a log of an older format.

    Attributes:
        open_turn: Number of the open turn, 0 between turns.
        open_step: Number of the open step, 0 outside.
        surface: Numbers of the current surface events in list order.
        replaced_by: For each shadowed event the event that replaced it.
        inherited_event_count: Number of the last ``inherited`` marker, 0 without one.
        surface_fault: What is wrong with a replacement although the log as such is right. Then
            nothing that needs the surface can be told, but all else.
    """

    def __init__(self, *, session_id: str, is_seeded: bool, is_migrated: bool = False) -> None:
        self.open_turn = 0
        self.open_step = 0
        self._fold = SurfaceFold()
        self.surface = self._fold.order
        self.replaced_by = self._fold.replaced_by
        self.inherited_event_count = 0
        self.surface_fault: str | None = None
        self._session_id = session_id
        self._is_seeded = is_seeded
        self._is_migrated = is_migrated
        self._marked = False
        self._last_turn = 0
        self._last_step = 0
        self._calls = ToolCalls()
        self._request_headers: set[int] = set()
        self._catalog: set[str] = set()
        self._own_part_fault: tuple[int, str] | None = None
        self._unidentified: MessageIdentityError | None = None
        self._titles = TitleRules()
        self._commands = CommandRules()
        self._compaction = CompactionRules()
        self._retries = RetryRules()
        self._dispatches = DispatchRules()
        self._checks: dict[str, Callable[[Event, Any], None]] = {
            "turn/start": self._turn_start,
            "turn/end": self._turn_end,
            "step/start": self._step_start,
            "step/end": self._step_end,
            "system/message": self._system_message,
            "developer/message": self._developer_message,
            "user/message": self._user_message,
            "assistant/message": self._assistant_message,
            "assistant/attempt": self._in_step,
            "tool/call": self._tool_call,
            "tool/result": self._tool_result,
            "tool/ptc-dispatch": self._dispatch_end,
            "tool/ptc-dispatch-start": self._dispatch_start,
            "request/header": self._request_header,
            "request/context": self._request_context,
            "llm/retry": self._retry,
            "llm/retry-started": self._retry_started,
            "command/run": self._command_run,
            "command/done": self._command_done,
            "compaction/start": self._compaction_start,
            "compaction/summary": self._compaction_summary,
            "compaction/prune": self._compaction_prune,
            "compaction/end": self._compaction_end,
            "session/title": self._title,
            "session/title-llm-request": self._title_request,
            "session/end-seed": self._end_seed,
            "session-log-deepseek/delivery-accepted": self._delivery,
            "agent/inbox/spliced": self._spliced,
            "subagent/catalog": self._catalog_entry,
        }

    def accept(self, event: Event) -> None:
        """Check the next event and take it into the state.

        Args:
            event: With a normalized envelope (`rows.normalize_row`). A type that is not known is
                log-only.

        Raises:
            BodyError: The event contradicts the earlier ones.
        """
        kind = event["type"]
        if len(event) > 4 and kind in _LOG_ONLY_TYPES:
            self._no_surface_keys(event)
        check = self._checks.get(kind)
        if check is None:
            return
        try:
            check(event, event["data"])
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            raise BodyError(f"{_place(event)} has a payload of the wrong shape") from error
        except BodyError as error:
            raise type(error)(f"{_place(event)} {error}") from None

    def accept_closing(self, event: Event) -> None:
        """Take a row of `closing.closing_rows` into the surface; it is right by construction."""
        if event["type"] in SURFACE_TYPES:
            self.surface.append(event["seq"])

    def finish(self) -> None:
        """Check what can only be known at the end of the log.

        Raises:
            BodyError: The seed marker does not agree with the header, or the session's own part
                (what is not inherited) has a fault that would be fine in the inherited one.
            MessageIdentityError: Nothing else is wrong, but a message is not what its event says.
        """
        if self._is_seeded and not self._marked:
            raise BodyError("the header says seeded, but there is no inherited end-seed marker")
        if self._own_part_fault is not None:
            seq, what = self._own_part_fault
            if not self._marked or seq > self.inherited_event_count:
                raise BodyError(what)
        if self._unidentified is not None:
            raise self._unidentified

    def check_surface(self) -> None:
        """Make sure that the surface can be told.

        Raises:
            SessionQueryError: ``INVALID_SURFACE``.
        """
        if self.surface_fault is not None:
            raise SessionQueryError(
                f"Session {self._session_id!r} has an invalid surface: {self.surface_fault}.",
                code=INVALID_SURFACE,
            )

    def unanswered_calls(self) -> Iterator[ToolCallState]:
        """Yield the open step's tool calls without a result, in order of appearance."""
        return self._calls.unanswered()

    def classification(self, count: int) -> bytearray:
        """Return one byte an event, see `SurfaceFold.classification`."""
        return self._fold.classification(count)

    # turns and steps

    def _turn_start(self, event: Event, data: Any) -> None:
        require(not self._compaction.is_open, "crosses an open compaction")
        if self.open_turn or not same_number(data["turn"], self._last_turn + 1):
            raise BodyError(f"does not open turn {self._last_turn + 1}")
        self.open_turn = self._last_turn = self._last_turn + 1
        self._last_step = 0
        self._calls.forget()

    def _turn_end(self, event: Event, data: Any) -> None:
        require(not self._compaction.is_open, "crosses an open compaction")
        if not self.open_turn or self.open_step or not same_number(data["turn"], self.open_turn):
            raise BodyError("does not end the open turn")
        self.open_turn = 0
        self._calls.forget()

    def _step_start(self, event: Event, data: Any) -> None:
        if (
            not self.open_turn
            or self.open_step
            or not same_number(data["turn"], self.open_turn)
            or not same_number(data["step"], self._last_step + 1)
        ):
            raise BodyError("does not open the next step of the open turn")
        self.open_step = self._last_step = self._last_step + 1
        self._calls.forget()

    def _step_end(self, event: Event, data: Any) -> None:
        self._in_step(event, data)
        for call in self._calls.unanswered():
            raise BodyError(f"ends a step with tool call {call.id!r} open")
        self.open_step = 0
        self._calls.forget()

    def _in_step(self, event: Event, data: Any) -> None:
        if (
            not self.open_step
            or not same_number(data["turn"], self.open_turn)
            or not same_number(data["step"], self.open_step)
        ):
            raise BodyError("does not belong to the open turn and step")

    def _in_turn(self) -> None:
        require(self.open_turn > 0, "stands outside of any turn")

    # surface

    def _check_message(self, event: Event, message: Any) -> None:
        try:
            check_message(event["type"], message)
        except MessageIdentityError as error:
            if not self._is_migrated:
                raise
            # In a migrated log whatever else is wrong counts before this.
            if self._unidentified is None:
                self._unidentified = MessageIdentityError(f"{_place(event)} {error}")

    def _no_surface_keys(self, event: Event) -> None:
        if "surfaceOp" in event or "sourceEventSeqs" in event:
            raise BodyError(f"{_place(event)} is log-only but has surface keys")

    def _system_message(self, event: Event, data: Any) -> None:
        self._in_step(event, data)
        self._check_message(event, data["message"])
        if self._fold.head is None:
            require(
                not self.surface and event["surfaceOp"] == "append",
                "is a system message without a system message at the head",
            )
            self._fold.head = event["seq"]
        self._fold.add(event)

    def _developer_message(self, event: Event, data: Any) -> None:
        self._in_step(event, data)
        message = data["message"]
        self._check_message(event, message)
        adds = any(
            isinstance(block, dict) and block.get("type") == "tool-addition"
            for block in message["content"]
        )
        require(adds == ("headerSeq" in data), "has a header number exactly if it adds tools")
        if adds:
            require(data["headerSeq"] in self._request_headers, "names an unknown request header")
        self._fold.add(event)

    def _user_message(self, event: Event, data: Any) -> None:
        self._check_message(event, data)
        source = data["source"]
        if source["kind"] == "user":
            self._titles.said(event["seq"])
        elif source["kind"] == "compact-checkpoint" and event["surfaceOp"] != "append":
            self._compaction.belongs(source)
        self._fold.add(event)

    def _assistant_message(self, event: Event, data: Any) -> None:
        self._in_step(event, data)
        message = data["message"]
        self._check_message(event, message)
        require("sourceEventSeqs" not in event, "cites sources")
        self._calls.announce(message["content"])
        self._fold.add(event)

    # tool calls

    def _tool_call(self, event: Event, data: Any) -> None:
        self._in_step(event, data)
        self._calls.record(event)

    def _tool_result(self, event: Event, data: Any) -> None:
        self._check_message(event, data["message"])
        if event["surfaceOp"] == "append":
            self._in_step(event, data)
            self._calls.answer(event)
            self._fold.add(event)
        else:
            self._in_turn()
            self._fold.add(event)
            fault = self._calls.replace(event)
            if fault is not None and self.surface_fault is None:
                self.surface_fault = f"{_place(event)} {fault}"

    def _dispatch_start(self, event: Event, data: Any) -> None:
        self._in_turn()
        self._dispatches.started(data)

    def _dispatch_end(self, event: Event, data: Any) -> None:
        self._in_turn()
        self._dispatches.ended(data)

    # requests

    def _request_header(self, event: Event, data: Any) -> None:
        self._in_turn()
        self._retries.provider = check_request_header(data)
        self._request_headers.add(event["seq"])

    def _request_context(self, event: Event, data: Any) -> None:
        self._in_turn()
        require(isinstance(data, dict), "has no payload")

    def _retry(self, event: Event, data: Any) -> None:
        # The step may have ended already, the turn may not.
        require(
            self._last_step > 0
            and self.open_turn > 0
            and same_number(data["turn"], self.open_turn)
            and same_number(data["step"], self._last_step),
            "does not belong to the newest step of the open turn",
        )
        self._retries.scheduled(data)

    def _retry_started(self, event: Event, data: Any) -> None:
        self._retries.started(data)

    # commands and compaction

    def _command_run(self, event: Event, data: Any) -> None:
        self._commands.run(event["seq"], data)

    def _command_done(self, event: Event, data: Any) -> None:
        self._commands.done(event["seq"], data)

    def _compaction_start(self, event: Event, data: Any) -> None:
        self._compaction.start(data, self.open_turn)

    def _compaction_summary(self, event: Event, data: Any) -> None:
        self._compaction.summary(data, self.surface, self._fold.head)

    def _compaction_prune(self, event: Event, data: Any) -> None:
        check_shadowed(data, self.surface, self._fold.head)

    def _compaction_end(self, event: Event, data: Any) -> None:
        self._compaction.end(data)

    # titles, seeds, bookkeeping

    def _title(self, event: Event, data: Any) -> None:
        self._titles.titled(data)

    def _title_request(self, event: Event, data: Any) -> None:
        self._titles.requested(data)

    def _end_seed(self, event: Event, data: Any) -> None:
        self._compaction.forget()
        if data.get("inherited") is True:
            require(self._is_seeded, "is an inherited marker in an unseeded session")
            self._marked = True
            self.inherited_event_count = event["seq"]
            self._catalog.clear()

    def _delivery(self, event: Event, data: Any) -> None:
        require(data.__class__ is dict, "has no payload")
        if "sessionFormatVersion" not in data:
            return
        if (
            data["sessionFormatVersion"] == CURRENT_GENERATION
            and data.get("sessionId") == self._session_id
            and (through := data.get("throughSeq")).__class__ is int
            and 0 <= through < event["seq"]
        ):
            # By far the most frequent event of long logs.
            return
        version, through = data["sessionFormatVersion"], data["throughSeq"]
        require(is_count(version), "has an unusable format version")
        require(is_count(through) and through < event["seq"], "was delivered before it was written")
        session_id = data["sessionId"]
        require(is_name(session_id), "names no session")
        if version == CURRENT_GENERATION and session_id != self._session_id:
            self._own_part_fault = (
                event["seq"],
                f"event {event['seq']} marks the delivery of another session",
            )

    def _spliced(self, event: Event, data: Any) -> None:
        if isinstance(data, dict):
            check_message_list(data["inserted"])

    def _catalog_entry(self, event: Event, data: Any) -> None:
        try:
            child = check_catalog(data)
            require(child not in self._catalog, "lists a child again")
        except BodyError as error:
            # Entries that were inherited are nobody's subagents here.
            self._own_part_fault = event["seq"], f"{_place(event)} {error}"
        else:
            self._catalog.add(child)


def _place(event: Event) -> str:
    return f"event {event['seq']} ({event['type']})"

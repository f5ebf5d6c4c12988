"""The rows that a reader adds, in memory, to a log whose last turn is open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dsh_memory.sessionquery.model.sessions import Event
from dsh_memory.sessionquery.rules.messages import NOT_STARTED_ERROR, NOT_STARTED_TEXT
from dsh_memory.sessionquery.rules.session import SessionValidator
from dsh_memory.sessionquery.rules.tool_calls import ToolCallState

_UNKNOWN_OUTCOME: Final = (
    "The tool call was interrupted after it was recorded, but no result was durably recorded. Its "
    "outcome is unknown. Decide whether to retry from the tool semantics: retry only if the "
    "operation is read-only or idempotent; if it may have side effects, first verify external "
    "state or ask the user. Do not retry blindly."
)

_UNKNOWN_OUTCOME_ERROR: Final = ("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN")


def closing_rows(rules: SessionValidator, next_seq: int, time: int) -> Iterator[Event]:
    """Yield the rows that close an interrupted turn, numbered from `next_seq`.

    Args:
        rules: The state after the last real row.
        next_seq: The number of the first added row.
        time: The time of the last real row, ms; added rows share it.
    """
    turn, step = rules.open_turn, rules.open_step
    if not turn:
        return
    seq = next_seq
    if step:
        for call in rules.unanswered_calls():
            yield _interrupted_result(call, seq=seq, time=time, turn=turn, step=step)
            seq += 1
        yield {"type": "step/end", "seq": seq, "time": time, "data": {"turn": turn, "step": step}}
        seq += 1
    yield {
        "type": "turn/end",
        "seq": seq,
        "time": time,
        "data": {"turn": turn, "reason": {"kind": "interrupted"}},
    }


def _interrupted_result(call: ToolCallState, *, seq: int, time: int, turn: int, step: int) -> Event:
    recorded = call.called_at is not None
    event: Event = {
        "type": "tool/result",
        "seq": seq,
        "time": time,
        "data": {
            "turn": turn,
            "step": step,
            "message": {
                "id": f"interrupted-tool-result-{call.id}-{seq}",
                "role": "tool",
                "toolCallId": call.id,
                "content": [
                    {"type": "text", "text": _UNKNOWN_OUTCOME if recorded else NOT_STARTED_TEXT}
                ],
                "isError": True,
                "source": {"kind": "tool", "callId": call.id},
            },
            "error": dict(
                zip(
                    ("name", "code"),
                    _UNKNOWN_OUTCOME_ERROR if recorded else NOT_STARTED_ERROR,
                    strict=True,
                )
            ),
        },
        "surfaceOp": "append",
    }
    if call.called_at is not None:
        event["sourceEventSeqs"] = [call.called_at]
    return event

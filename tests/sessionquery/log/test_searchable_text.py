"""The searchable text of events."""

from __future__ import annotations

from typing import Any

import pytest
from dsh_memory.sessionquery.log.searchable_text import PayloadError, event_text
from made_stores import assistant, row, tool_block, tool_call, tool_result, turn_end, user


def text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (user(0, " \ufeffhello \u3000"), "hello"),
        (user(0, content=[text("a"), text("  "), text(" b ")]), "a\nb"),
        (user(0, content=[]), ""),
        (user(0, content=["x", 5, {"text": "no type"}, {"type": "image"}, text("a")]), "a"),
        (user(0, "\ud83d\ude00 \ud83d"), "\U0001f600 \ufffd"),
        (assistant(0, text("say"), tool_block("c", "read", '{"a":1}')), 'say\nread\n{"a":1}'),
        (assistant(0, {"type": "reasoning", "text": "secret"}), ""),
        (tool_call(0, name="read", arguments=" {} "), "read\n{}"),
        (tool_result(0), "output"),
        (tool_result(0, data={"error": {"name": "E", "code": "C"}}), "output\nE\nC"),
        (tool_result(0, data={"error": {"name": None}}), "output"),
        (tool_result(0, data={"error": "text"}), "output"),
        (row(0, "todo/write", {"todos": [{"status": "s", "content": " c "}]}), "s\nc"),
        (turn_end(0), ""),
        (turn_end(0, kind="aborted"), "aborted"),
        (turn_end(0, kind="max-tokens"), "max-tokens"),
        (turn_end(0, kind="interrupted"), "interrupted"),
        (turn_end(0, kind="forked"), ""),
        (turn_end(0, kind="error", error={"message": " boom "}), "error\nboom"),
        (turn_end(0, kind="error", error={"message": "  "}), "error"),
        (row(0, "turn/end", {"turn": 1, "reason": "text"}), ""),
        (row(0, "session/title", {"title": "t"}), ""),
        (row(0, "system/message", {"message": {"content": [text("prompt")]}}), ""),
        (row(0, "future/type", {"content": [text("x")]}), ""),
    ],
)
def test_text_is_taken_from_the_known_places(event: dict[str, Any], expected: str) -> None:
    assert event_text(event) == expected


@pytest.mark.parametrize(
    "event",
    [
        user(0, content=[None]),
        user(0, content=[text(5)]),
        user(0, content=[{"type": "text"}]),
        user(0, content=[{"type": "tool-call", "name": "n"}]),
        tool_result(0, data={"error": {"name": 5}}),
        row(0, "todo/write", []),
        row(0, "todo/write", {"todos": [{"content": "c"}]}),
        row(0, "turn/end", {"turn": 1, "reason": None}),
        row(0, "turn/end", {"turn": 1, "reason": {"kind": "error"}}),
    ],
)
def test_a_payload_of_another_shape_is_an_error(event: dict[str, Any]) -> None:
    with pytest.raises(PayloadError, match=event["type"]):
        event_text(event)

"""Which logs can be read, and what a reader makes of interrupted and broken ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dsh_memory.sessionquery.errors import CORRUPT_SESSION, PERSISTENCE_FAILED, SessionQueryError
from dsh_memory.sessionquery.rules.messages import NOT_STARTED_TEXT
from made_stores import (
    MadeStore,
    Row,
    assistant,
    frame,
    header,
    lines,
    replace,
    row,
    step_end,
    step_start,
    tool_block,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    user,
)

NOT_STARTED = {"error": {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"}}
OPEN_STEP = [turn_start(0), step_start(1)]
CALLED = [*OPEN_STEP, assistant(2, tool_block()), tool_call(3)]
MARKER = {"inherited": True}


def compaction(seq: int, shadowed: list[int], *, kind: str = "compact-checkpoint") -> list[Row]:
    last = seq + 2
    source = {"kind": kind, "compactionId": "k"}
    return [
        row(seq, "compaction/start", {"compactionId": "k", "turn": None}),
        row(
            seq + 1,
            "compaction/summary",
            {
                "compactionId": "k",
                "summary": [],
                "shadowedRange": {"start": shadowed[0], "end": shadowed[-1]},
                "shadowedSeqs": shadowed,
            },
        ),
        user(
            last,
            "checkpoint",
            surface=replace(shadowed[0], shadowed[-1]),
            source=source,
            sources=[seq, seq + 1, *shadowed],
        ),
        row(seq + 3, "compaction/end", {"compactionId": "k", "turn": None}),
    ]


def retry(seq: int, number: int, **changes: Any) -> Row:
    data = {
        "retryId": "r", "turn": 1, "step": 1, "provider": "p", "policyKey": "k", "retry": number,
    } | changes  # fmt: skip
    return row(seq, "llm/retry", data)


def request_header(seq: int, **changes: Any) -> Row:
    config = {"provider": "p", "model": "m"}
    return row(seq, "request/header", {"header": {"config": config} | changes, "reason": "initial"})


READABLE: dict[str, tuple[list[Row], int]] = {
    "nothing": ([], 0),
    "user messages without a turn": ([user(0), user(1)], 2),
    "two turns": ([turn_start(0), turn_end(1), turn_start(2, 2), turn_end(3, 2)], 4),
    "a whole step": ([*CALLED, tool_result(4), step_end(5), turn_end(6)], 7),
    "a number written as 1.0": ([row(0, "turn/start", {"turn": 1.0}), turn_end(1)], 2),
    "an appended message that cites": ([user(0), user(1, sources=[0])], 2),
    "an unknown type that may be ignored": ([row(0, "x/y", 5, ignorable=True)], 1),
    "a compaction": ([user(0), user(1), *compaction(2, [0, 1])], 6),
    "a tool result with other content": (
        [
            *CALLED,
            tool_result(4),
            tool_result(5, surface=replace(4, 4), sources=[4], id="r4", content=[]),
            step_end(6),
            turn_end(7),
        ],
        8,
    ),
    "retries": (
        [
            *OPEN_STEP,
            request_header(2),
            retry(3, 1),
            row(4, "llm/retry-started", {"retryId": "r", "turn": 1, "step": 1, "retry": 1}),
            retry(5, 2),
            step_end(6),
            turn_end(7),
        ],
        8,
    ),
    "a retry after its step": (
        [*OPEN_STEP, request_header(2), step_end(3), retry(4, 1), turn_end(5)],
        6,
    ),
    "a title of a person": (
        [row(0, "session/title", {"title": "t", "messageSeqs": [], "source": {"kind": "user"}})],
        1,
    ),
    "an open compaction": ([row(0, "compaction/start", {"compactionId": "k", "turn": None})], 1),
    "a payload of a log-only row": ([row(0, "todo/write", {"todos": 5})], 1),
}


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("encoding", ["plain", "zstd"])
def test_right_logs_are_read(name: str, encoding: Any, make_store: Callable[[], MadeStore]) -> None:
    rows, count = READABLE[name]
    store = make_store()
    store.write("s", rows, encoding=encoding)
    assert len(store.load("s").events) == count


CORRUPT: dict[str, list[Row]] = {
    "a turn is skipped": [turn_start(0, 2)],
    "a turn in a turn": [turn_start(0), turn_start(1, 2)],
    "a turn number that is true": [row(0, "turn/start", {"turn": True})],
    "a turn ends that is not open": [turn_end(0)],
    "a turn ends in a step": [*OPEN_STEP, turn_end(2)],
    "a step outside of a turn": [step_start(0)],
    "a step is skipped": [turn_start(0), step_start(1, 1, 2)],
    "a step ends with an open call": [*CALLED, step_end(4)],
    "an answer outside of its step": [turn_start(0), assistant(1)],
    "a call twice": [*CALLED, tool_call(4)],
    "a call that was not announced": [*OPEN_STEP, assistant(2), tool_call(3)],
    "a call with other arguments": [*CALLED[:3], tool_call(3, arguments="[]")],
    "a call announced twice": [*OPEN_STEP, assistant(2, tool_block(), tool_block())],
    "a result without its call": [*OPEN_STEP, tool_result(2)],
    "a result of a call that was not started": [*CALLED[:3], tool_result(3)],
    "two results": [*CALLED, tool_result(4), tool_result(5)],
    "a result with another source": [*CALLED, tool_result(4, toolCallId="c2")],
    "an error of a result that is none": [*CALLED, tool_result(4, data={"error": None})],
    "a message without id": [user(0, id="")],
    "a message with another role": [user(0, role="assistant")],
    "a message without content list": [user(0, content="x")],
    "a message without source": [user(0, source=None)],
    "a message of an older source": [user(0, source={"kind": "plugin"})],
    "a wrapped tool result": [user(0, content=[{"type": "tool-result"}])],
    "a surface row without operation": [row(0, "user/message", user(0)["data"])],
    "a log-only row with operation": [row(0, "plan/mode", {}, surfaceOp="append")],
    "a log-only row with sources": [user(0), row(1, "plan/mode", {}, sourceEventSeqs=[0])],
    "no sources at all": [user(0, sources=[])],
    "a replacement without sources": [user(0), user(1, surface=replace(0, 0))],
    "a replacement that omits one": [
        user(0), user(1), user(2, surface=replace(0, 1), sources=[1]),
    ],
    "a replacement of what is not there": [
        row(0, "plan/mode", {}), user(1), user(2, surface=replace(0, 1), sources=[0, 1]),
    ],
    "a reversed replacement": [
        user(0), user(1), user(2, surface=replace(1, 0), sources=[0, 1]),
    ],
    "a replacement of a later row": [user(0), user(1, surface=replace(0, 1), sources=[0])],
    "a replacement with another key": [
        user(0), user(1, surface=replace(0, 0) | {"x": 1}, sources=[0]),
    ],
    "two open compactions": [*compaction(0, [0])[:1], *compaction(1, [0])[:1]],
    "a turn in a compaction": [*compaction(0, [0])[:1], turn_start(1)],
    "a summary of no run": [
        user(0), user(1), user(2), *compaction(3, [0, 2])[:2],
    ],
    "a checkpoint of no compaction": [
        user(0), user(1, surface=replace(0, 0), sources=[0], source={"kind": "compact-checkpoint"}),
    ],
    "a compaction without summary": [
        compaction(0, [0])[0], row(1, "compaction/end", {"compactionId": "k", "turn": None}),
    ],
    "a command that was not run": [row(0, "command/done", {"commandId": "k"})],
    "a command run twice": [
        row(0, "command/run", {"commandId": "k"}), row(1, "command/run", {"commandId": "k"}),
    ],
    "a title that cites nobody": [
        row(0, "session/title", {"title": "t", "messageSeqs": [], "source": {"kind": "fallback"}}),
    ],
    "a title that cites twice": [
        user(0),
        row(1, "session/title", {"messageSeqs": [0, 0], "source": {"kind": "fallback"}}),
    ],
    "a request header outside of a turn": [request_header(0)],
    "a request header with a system prompt": [turn_start(0), request_header(1, system="x")],
    "a retry too many": [*OPEN_STEP, request_header(2), retry(3, 2)],
    "a retry after its turn": [
        *OPEN_STEP, request_header(2), step_end(3), turn_end(4), retry(5, 1),
    ],
    "a retry of another provider": [*OPEN_STEP, request_header(2), retry(3, 1, provider="q")],
    "an inherited marker": [row(0, "session/end-seed", MARKER)],
    "another session's delivery": [
        row(
            0,
            "session-log-deepseek/delivery-accepted",
            {"sessionId": "other", "sessionFormatVersion": 4, "throughSeq": 0},
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CORRUPT)
def test_wrong_logs_are_corrupt(name: str, make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    path = store.write("s", CORRUPT[name])
    with pytest.raises(SessionQueryError) as caught:
        store.load("s")
    assert caught.value.code == CORRUPT_SESSION
    assert str(path) in caught.value.message


def test_a_seeded_log_needs_its_marker(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write("bare", [user(0)], isSeeded=True)
    delivery = row(
        1,
        "session-log-deepseek/delivery-accepted",
        {"sessionId": "parent", "sessionFormatVersion": 4, "throughSeq": 0},
    )
    rows = [user(0), delivery, row(2, "session/end-seed", MARKER), user(3)]
    store.write("fork", rows, isSeeded=True)
    with pytest.raises(SessionQueryError):
        store.load("bare")
    assert store.load("fork").inherited_event_count == 2


@pytest.mark.parametrize("identity", ["interrupted-tool-result-c1-99", "forked-tool-result-c1-3"])
def test_a_repaired_call_needs_no_start(identity: str, make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    text = [{"type": "text", "text": NOT_STARTED_TEXT}]
    result = tool_result(3, id=identity, isError=True, content=text, data=NOT_STARTED)
    store.write("s", [*CALLED[:3], result, step_end(4), turn_end(5)])
    assert len(store.load("s").events) == 6


@pytest.mark.parametrize(
    "broken", ["{bad", "", "[1]", row(1, "plan/mode", {}, x=1), user(5), row(1, "a", {}) | {"t": 1}]
)
def test_a_broken_row_ends_a_plain_log(
    broken: Row | str, make_store: Callable[[], MadeStore]
) -> None:
    store = make_store()
    store.write("s", [user(0), broken, user(1), row(2, "future/type", {})])
    assert [event["seq"] for event in store.load("s").events] == [0]


@pytest.mark.parametrize("later", [turn_end(7), {"type": "turn/end"}])
def test_a_finished_turn_behind_a_broken_row_shows_corruption(
    later: Row, make_store: Callable[[], MadeStore]
) -> None:
    store = make_store()
    store.write("s", [user(0), "{bad", later])
    with pytest.raises(SessionQueryError, match="broken although a finished turn") as caught:
        store.load("s")
    assert caught.value.code == CORRUPT_SESSION


UNDECODABLE: dict[str, Row] = {
    "a result without a call": tool_result(1, toolCallId=None),
    "a result of a wrong role": tool_result(1, role="user"),
    "a system message outside of steps": row(1, "system/message", {"step": 1}),
    "a developer message without a source": row(
        1, "developer/message", {"turn": 1, "step": 1, "message": {"role": "developer"}}
    ),
    "a request header without a header": row(1, "request/header", {}),
    "a message of a retired source": user(1, source={"kind": "plugin"}),
    "a block of an older format": user(1, content=[{"type": "tool-result"}]),
    "a queued block of an older format": row(
        1, "agent/inbox/spliced", {"inserted": [{"content": [{"type": "tool-result"}]}]}
    ),
}


@pytest.mark.parametrize("name", UNDECODABLE)
@pytest.mark.parametrize("behind", [True, False])
def test_some_payloads_are_corruption_even_where_rows_do_not_count(
    name: str, behind: bool, make_store: Callable[[], MadeStore]
) -> None:
    store = make_store()
    wrong = UNDECODABLE[name]
    store.write("s", [user(0), "[]", wrong | {"seq": 9}] if behind else [user(0), wrong | {"z": 1}])
    with pytest.raises(SessionQueryError) as caught:
        store.load("s")
    assert caught.value.code == CORRUPT_SESSION


def test_a_retired_type_is_refused_even_behind_a_broken_row(
    make_store: Callable[[], MadeStore],
) -> None:
    store = make_store()
    store.write("s", [user(0), "[]", row(1, "tool/code-dispatch", {})])
    with pytest.raises(SessionQueryError, match="unknown type") as caught:
        store.load("s")
    assert caught.value.code == PERSISTENCE_FAILED
    store.write("s", [user(0), "[]", row(1, "tool/code-dispatch", {}, ignorable=True)])
    assert len(store.load("s").events) == 1


def test_a_broken_row_in_a_complete_frame_is_corruption(
    make_store: Callable[[], MadeStore],
) -> None:
    store = make_store()
    path = store.path("s", encoding="zstd")
    whole = frame(lines([header("s")])) + frame(lines([user(0)]))
    store.write_bytes(path, whole + frame(lines([user(7)])))
    with pytest.raises(SessionQueryError, match="although its frame is complete"):
        store.load("s")
    store.write_bytes(path, whole + frame(lines([user(7)]))[:-5])
    assert len(store.load("s").events) == 1


def test_an_unknown_type_is_told_only_if_nothing_else_is_wrong(
    make_store: Callable[[], MadeStore],
) -> None:
    store = make_store()
    store.write("newer", [row(0, "future/type", {}), user(1)])
    store.write("wrong", [row(0, "future/type", {}), turn_end(1)])
    with pytest.raises(SessionQueryError, match="future/type") as newer:
        store.load("newer")
    with pytest.raises(SessionQueryError) as wrong:
        store.load("wrong")
    assert (newer.value.code, wrong.value.code) == (PERSISTENCE_FAILED, CORRUPT_SESSION)


def test_an_interrupted_turn_is_closed_in_memory(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    blocks = [tool_block("c1"), tool_block("c2"), tool_block("c3")]
    store.write(
        "s", [*OPEN_STEP, assistant(2, *blocks), tool_call(3), tool_call(4, "c2"), tool_result(5)]
    )
    loaded = store.load("s")
    closing = loaded.events[loaded.row_count :]
    assert loaded.row_count == 6
    assert [event["type"] for event in closing] == [
        "tool/result", "tool/result", "step/end", "turn/end",
    ]  # fmt: skip
    unknown, not_started = closing[:2]
    assert unknown["data"]["error"]["code"] == "TOOL_OUTCOME_UNKNOWN"
    assert unknown["sourceEventSeqs"] == [4]
    assert not_started["data"]["error"]["code"] == "TOOL_NOT_STARTED"
    assert "sourceEventSeqs" not in not_started
    assert not_started["data"]["message"]["id"] == "interrupted-tool-result-c3-7"
    assert loaded.surfaces[6:] == ["current", "current", "log-only", "log-only"]
    assert {event["time"] for event in closing} == {loaded.events[5]["time"]}


def test_replaced_events_are_shadowed_in_list_order(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    rows = [user(0), user(1), user(2), user(3, surface=replace(0, 1), sources=[0, 1])]
    store.write("s", rows)
    loaded = store.load("s")
    assert loaded.surfaces == ["shadowed", "shadowed", "current", "current"]
    assert loaded.surface_order == [3, 2]
    assert loaded.replaced_by == {0: 3, 1: 3}

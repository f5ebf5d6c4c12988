"""The migration steps one by one, on small hand-made logs."""

from __future__ import annotations

import copy
import itertools
import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest
from dsh_memory.sessionquery.generations import v0_to_v1, v1_to_v2, v2_to_v3, v3_to_v4
from dsh_memory.sessionquery.generations.catalog import complete
from dsh_memory.sessionquery.generations.context import LogContext
from dsh_memory.sessionquery.generations.decoding import decode
from dsh_memory.sessionquery.generations.problems import CorruptLogError, MigrationRefusedError
from dsh_memory.sessionquery.model.children import Child
from dsh_memory.sessionquery.model.sessions import SessionHeader

Row = dict[str, Any]

TURN = [("turn/start", {"turn": 1}), ("step/start", {"turn": 1, "step": 1})]
STOP = {"type": "finish", "reason": {"kind": "stop"}}


def log(generation: int, *, seed: int | None = None) -> LogContext:
    return LogContext(
        session_id="s",
        created_at=7,
        generation=generation,
        is_seeded=seed is not None,
        seed_length=seed or 0,
    )


def rows(*events: tuple[Any, ...]) -> list[Row]:
    """Number ``(type, data)`` or ``(type, data, envelope)``; times are 100 + number."""
    out: list[Row] = []
    for seq, (kind, data, *rest) in enumerate(events):
        out.append({"type": kind, "seq": seq, "time": 100 + seq, "data": data, **dict(*rest)})
    return out


def user(identity: str = "u", **source: Any) -> Row:
    return {
        "content": [{"type": "text", "text": "question"}],
        "source": source or {"kind": "user"},
        "role": "user",
        "id": identity,
    }


def answer(**more: Any) -> Row:
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "answer"}],
        "source": {"kind": "model", "provider": "p", "model": "m"},
        "id": "a",
    }
    return {"turn": 1, "step": 1, "message": message, **more}


def chunk(text: str, turn: int = 1) -> tuple[str, Row]:
    piece = {"type": "text-delta", "index": 0, "text": text}
    return ("assistant/chunk", {"turn": turn, "step": 1, "chunk": piece})


def finish() -> tuple[str, Row]:
    return ("assistant/chunk", {"turn": 1, "step": 1, "chunk": STOP})


def types(events: Iterable[Row]) -> list[str]:
    return [event["type"] for event in events]


# Decoding


def lines(*values: Any) -> list[bytes]:
    return [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]


def test_what_follows_a_broken_line_does_not_count() -> None:
    good = rows(*TURN)
    decoded = decode(lines(good[0], b"garbage", good[1]), 0, is_seeded=False)
    assert types(decoded) == ["turn/start"]


@pytest.mark.parametrize("broken", [b"", b"garbage", b"[]", b'{"type":"x","seq":9}'])
def test_a_finished_turn_behind_a_broken_row_makes_the_log_corrupt(broken: bytes) -> None:
    end = {"type": "turn/end", "seq": 1, "time": 1, "data": {"turn": 1}}
    with pytest.raises(CorruptLogError):
        list(decode(lines(*rows(TURN[0]), broken, end), 0, is_seeded=False))


def test_a_packed_row_takes_as_many_numbers_as_it_has_members() -> None:
    data = {"turn": 1, "step": 1, "index": 0, "dt": [1, 1], "texts": ["a", "b", "c"]}
    packed = {"type": "text-chunks", "seq0": 0, "time0": 5, "data": data}
    following = {"type": "plan/mode", "seq": 3, "time": 9, "data": {"active": True}}
    decoded = list(decode(lines(packed, following), 1, is_seeded=False))
    assert decoded == [packed, following]


def test_ranges_of_sources_are_unpacked() -> None:
    row = {"type": "x", "seq": 9, "time": 1, "data": {}, "sourceEventSeqs": [1, [3, 5]]}
    before = [{"type": "x", "seq": seq, "time": 1, "data": {}} for seq in range(9)]
    decoded = list(decode(lines(*before, row), 0, is_seeded=False))
    assert decoded[-1]["sourceEventSeqs"] == [1, 3, 4, 5]


# Generation 0 to 1


def test_early_shapes_get_stable_ids_and_later_names() -> None:
    early = rows(
        ("turn/start", {"turn": 1, "trigger": {"kind": "user"}}),
        ("user/message", {"content": [], "source": {"kind": "user"}}, {"surfaceOp": "append"}),
        ("compact/start", {"turn": 1}),
        ("compact/end", {"turn": 1}),
        ("turn/end", {"turn": 1, "reason": {"kind": "error", "step": 1, "message": "bad"}}),
    )
    later = list(v0_to_v1.migrate(early, log(0)))
    assert later[0]["data"] == {"turn": 1}
    assert later[1]["data"]["id"] == "legacy-message:s:1"
    assert [event["data"]["compactionId"] for event in later[2:4]] == ["legacy-compaction:s:2"] * 2
    assert types(later[2:4]) == ["compaction/start", "compaction/end"]
    error = {"kind": "error", "error": {"message": "bad", "code": "UNKNOWN"}}
    assert later[4]["data"]["reason"] == error


@pytest.mark.parametrize(
    "event",
    [
        ("mode/set", {"mode": "x"}),
        ("future/x", {}, {"ignorable": True}),
        ("plan/mode", {"active": True, "extra": 1}),
        ("agent/inbox/spliced", {"target": "next-turn", "start": 0, "inserted": [], "removed": 1}),
    ],
)
def test_what_generation_1_does_not_know_is_refused(event: tuple[Any, ...]) -> None:
    with pytest.raises(MigrationRefusedError):
        list(v0_to_v1.migrate(rows(event), log(0)))


# Generation 1 to 2


def test_chunks_move_into_the_message_that_cites_them() -> None:
    cited = {"surfaceOp": "append", "sourceEventSeqs": [2, 3, 4]}
    source = rows(
        *TURN, chunk("an"), chunk("swer"), finish(), ("assistant/message", answer(), cited)
    )
    *_, message = v1_to_v2.migrate(source, log(1))
    assert message["seq"] == 2
    assert "sourceEventSeqs" not in message
    assert message["data"]["stream"] == [
        {"type": "text-chunks", "time0": 102, "index": 0, "dt": [1], "texts": ["an", "swer"]},
        {"type": "chunk", "time": 104, "chunk": STOP},
    ]


def test_an_attempt_without_a_message_becomes_an_event_before_what_it_held_back() -> None:
    plan = ("plan/mode", {"active": True})
    source = rows(*TURN, chunk("lost"), plan, ("step/end", {"turn": 1, "step": 1}))
    events = list(v1_to_v2.migrate(source, log(1)))
    assert types(events[2:]) == ["assistant/attempt", "plan/mode", "step/end"]
    assert [event["seq"] for event in events] == list(range(5))


def test_an_event_between_chunks_comes_before_the_message_and_can_still_be_cited() -> None:
    message = ("user/message", user(), {"surfaceOp": "append"})
    cited = {"surfaceOp": "append", "sourceEventSeqs": [2, 4]}
    title = {"title": "T", "messageSeqs": [3], "source": {"kind": "fallback"}}
    source = rows(
        *TURN,
        chunk("a"),
        message,
        chunk("b"),
        ("assistant/message", answer(), cited),
        ("session/title", title),
    )
    events = list(v1_to_v2.migrate(source, log(1)))
    assert types(events[2:]) == ["user/message", "assistant/message", "session/title"]
    assert events[-1]["data"]["messageSeqs"] == [2]


def test_a_message_that_cites_a_part_of_its_attempt_is_refused() -> None:
    cited = {"surfaceOp": "append", "sourceEventSeqs": [2]}
    source = rows(*TURN, chunk("a"), chunk("b"), ("assistant/message", answer(), cited))
    with pytest.raises(MigrationRefusedError):
        list(v1_to_v2.migrate(source, log(1)))


def test_the_end_of_an_interrupted_turn_is_inserted_after_a_restart() -> None:
    queued = {"target": "next-turn", "start": 0, "inserted": [user()]}
    source = rows(TURN[0], ("agent/inbox/spliced", queued), ("turn/start", {"turn": 2}))
    events = list(v1_to_v2.migrate(source, log(1)))
    assert types(events) == ["turn/start", "agent/inbox/spliced", "turn/end", "turn/start"]
    assert events[2]["data"] == {"turn": 1, "reason": {"kind": "interrupted"}}
    assert events[2]["time"] == events[3]["time"]


def test_a_turn_in_an_open_turn_is_refused_otherwise() -> None:
    with pytest.raises(MigrationRefusedError):
        list(v1_to_v2.migrate(rows(TURN[0], ("turn/start", {"turn": 2})), log(1)))


@pytest.mark.parametrize(("seed", "place"), [(0, 0), (1, 1), (2, 2)])
def test_the_inherited_part_ends_with_a_marker(seed: int, place: int) -> None:
    events = list(v1_to_v2.migrate(rows(*TURN), log(1, seed=seed)))
    assert types(events)[place] == "session/end-seed"
    assert events[place]["data"] == {"inherited": True}


def test_a_seed_longer_than_the_log_is_corrupt() -> None:
    with pytest.raises(CorruptLogError):
        list(v1_to_v2.migrate(rows(*TURN), log(1, seed=3)))


def test_a_goal_that_a_message_carries_becomes_an_event() -> None:
    change = {"kind": "goal/change", "version": 1, "operation": "clear"}
    change |= {"cleared": {"id": "g", "revision": 1}, "clearedAt": 5}
    message = user(kind="goal", goalId="g", revision=1, round=0, change=change)
    events = list(v1_to_v2.migrate(rows(("user/message", message)), log(1)))
    assert types(events) == ["goal/change", "user/message"]
    assert events[0]["data"] == change
    assert events[1]["data"]["source"] == {"kind": "plugin", "plugin": "goal"}


# Generation 2 to 3


def header(system: str) -> tuple[str, Row]:
    config = {"provider": "p", "model": "m"}
    return (
        "request/header",
        {"header": {"config": config, "system": system, "tools": []}, "reason": "initial"},
    )


def test_the_prompt_becomes_system_messages_that_replace_each_other() -> None:
    source = rows(*TURN, header("one"), header("one"), header("two"), header(""))
    events = list(v2_to_v3.migrate(source, log(2)))
    systems = [event for event in events if event["type"] == "system/message"]
    texts = [event["data"]["message"]["content"] for event in systems]
    assert texts == [
        [],
        [{"type": "text", "text": "one"}],
        [{"type": "text", "text": "two"}],
        [],
    ]
    assert systems[0]["surfaceOp"] == "append"
    for earlier, later in itertools.pairwise(systems):
        head = earlier["seq"]
        assert later["surfaceOp"] == {"op": "replace", "startSeq": head, "endSeq": head}
        assert later["sourceEventSeqs"] == [head]
    assert [event["seq"] for event in events] == list(range(len(events)))
    headers = [event["data"]["header"] for event in events if event["type"] == "request/header"]
    assert all(set(data) == {"config"} for data in headers)


def test_a_replacement_is_renumbered_and_renamed() -> None:
    replace = {
        "surfaceOp": {"op": "replace", "start": 2, "end": 2},
        "sourceEventSeqs": [2],
    }
    source = rows(
        *TURN,
        ("user/message", user("u1"), {"surfaceOp": "append"}),
        ("user/message", user("u2"), replace),
    )
    *_, event = v2_to_v3.migrate(source, log(2))
    assert event["surfaceOp"] == {"op": "replace", "startSeq": 3, "endSeq": 3}
    assert event["sourceEventSeqs"] == [3]


def test_a_message_before_the_first_step_is_refused() -> None:
    source = rows(TURN[0], ("user/message", user(), {"surfaceOp": "append"}))
    with pytest.raises(MigrationRefusedError):
        list(v2_to_v3.migrate(source, log(2)))


# Generation 3 to 4


@pytest.mark.parametrize(
    ("plugin", "kind"),
    [
        ("compact", "compact-checkpoint"),
        ("tools-code-mode", "ptc-mode"),
        ("@deepseek-ai/dsh-system-prompt", "runtime-context"),
        ("goal", "goal"),
        ("mine", "plugin:mine"),
    ],
)
def test_plugin_sources_become_kinds(plugin: str, kind: str) -> None:
    source = rows(("user/message", user(kind="plugin", plugin=plugin, form="x")))
    (event,) = v3_to_v4.migrate(source, log(3))
    assert event["data"]["source"] == {"kind": kind, "form": "x"}


def test_a_tool_result_loses_its_wrapping() -> None:
    content = [{"type": "text", "text": "out"}, {"type": "chart"}]
    block = {"type": "tool-result", "toolCallId": "c", "content": content, "isError": False}
    block["extra"] = 1
    message = {"role": "user", "source": {"kind": "tool", "callId": "c"}, "id": "t"}
    data = {"turn": 1, "step": 1, "message": {**message, "content": [block]}}
    (event,) = v3_to_v4.migrate(rows(("tool/result", data)), log(3))
    assert event["data"]["message"] == {
        "role": "tool",
        "source": {"kind": "tool", "callId": "c"},
        "toolCallId": "c",
        "content": [{"type": "text", "text": "out"}, {"type": "plugin:chart"}],
        "isError": False,
        "id": "t",
        "plugin:result:extra": 1,
    }


def test_an_unknown_type_needs_to_be_ignorable() -> None:
    (event,) = v3_to_v4.migrate(rows(("future/x", {"a": 1}, {"ignorable": True})), log(3))
    assert (event["type"], event["data"]) == ("plugin:future/x", {"a": 1})
    with pytest.raises(MigrationRefusedError):
        list(v3_to_v4.migrate(rows(("future/x", {})), log(3)))


# Catalog


def child(identity: str, created: int, *descriptors: Row) -> Child:
    head = SessionHeader(
        id=identity, created_at=created, is_seeded=False, delegation_depth=1, origin="subagent"
    )
    return Child(head, lambda: list(descriptors))


def test_children_are_listed_at_the_end_in_order_of_creation() -> None:
    described = {"version": 3, "mode": "one-shot", "label": "help"}
    children = [child("late", 9), child("b", 5, described), child("a", 5, described, described)]
    events = list(complete(rows(*TURN), log(0), lambda: children))
    assert [event["data"] for event in events[2:]] == [
        {"version": 1, "childId": "a", "childCreatedAt": 5, "mode": "unknown"},
        {"version": 0, "childId": "b", "childCreatedAt": 5, "mode": "one-shot", "label": "help"},
        {"version": 1, "childId": "late", "childCreatedAt": 9, "mode": "unknown"},
    ]
    assert [event["seq"] for event in events] == list(range(5))
    assert {event["time"] for event in events[2:]} == {101}


def test_an_entry_that_contradicts_the_child_is_refused() -> None:
    entry = {"version": 0, "childId": "c", "childCreatedAt": 5, "mode": "one-shot"}
    described = {"version": 3, "mode": "one-shot"}
    agreeing = [child("c", 5, described)]
    assert len(list(complete(rows(("subagent/catalog", entry)), log(3), lambda: agreeing))) == 1
    with pytest.raises(MigrationRefusedError):
        list(
            complete(rows(("subagent/catalog", entry)), log(3), lambda: [child("c", 6, described)])
        )


# All of them


def test_the_steps_leave_their_input_as_it_was() -> None:
    cited = {"surfaceOp": "append", "sourceEventSeqs": [4, 5]}
    source = rows(
        *TURN,
        ("user/message", user(), {"surfaceOp": "append"}),
        header("one"),
        chunk("a"),
        chunk("b"),
        ("assistant/message", answer(), cited),
        ("step/end", {"turn": 1, "step": 1}),
        ("turn/end", {"turn": 1, "reason": {"kind": "completed"}}),
    )
    before = copy.deepcopy(source)
    events: Iterable[Row] = source
    for step in (v0_to_v1, v1_to_v2, v2_to_v3, v3_to_v4):
        events = step.migrate(events, log(0))
    assert types(events)[-1] == "turn/end"
    assert source == before


def test_nothing_of_this_is_loaded_with_the_engine() -> None:
    script = (
        "import sys, dsh_memory.sessionquery.engine, dsh_memory.sessionquery.index.search\n"
        "print(sorted(name for name in sys.modules if 'sessionquery.generations.' in name))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"

"""Sessions of different formats that belong together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.sessionquery.engine import SessionQueryEngine
from dsh_memory.sessionquery.model.options import EngineOptions

Row = dict[str, Any]

OPEN_TURN: list[Row] = [
    {"type": "turn/start", "data": {"turn": 1}},
    {"type": "step/start", "data": {"turn": 1, "step": 1}},
    {
        "type": "user/message",
        "data": {
            "content": [{"type": "text", "text": "walrus"}],
            "source": {"kind": "user"},
            "role": "user",
            "id": "u",
        },
        "surfaceOp": "append",
    },
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def write(home: Path, session_id: str, generation: int, rows: list[Row], **header: Any) -> None:
    name = f"session.v{generation}.jsonl" if generation else "session.jsonl"
    first: Row = {
        "type": "session",
        "version": generation,
        "id": session_id,
        "createdAt": 1,
        "cwd": "/w",
        "delegationDepth": 0,
        **({"isSeeded": False} if generation >= 2 else {}),
        **header,
    }
    folder = home / "sessions" / "--w--" / session_id
    folder.mkdir(parents=True, exist_ok=True)
    lines = [first, *({"seq": seq, "time": 10 + seq, **row} for seq, row in enumerate(rows))]
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


@pytest.mark.anyio
@pytest.mark.parametrize("child_generation", [0, 4])
async def test_the_index_follows_the_children_of_an_older_session(
    tmp_path: Path, child_generation: int
) -> None:
    home = tmp_path / "home"
    write(home, "parent", 0, OPEN_TURN)
    options = EngineOptions(home=str(home), index_path=str(tmp_path / "index.sqlite3"))
    async with SessionQueryEngine(options) as engine:
        alone = await engine.search_events("parent", "interrupted")
        listed = await engine.list_events("parent")
        described = {
            "type": "subagent/descriptor",
            "data": {"version": 3, "mode": "one-shot", "provider": "spawn"},
        }
        extra = {"origin": "subagent", "parentSession": "parent", "createdAt": 5}
        write(home, "child", child_generation, [described], **extra)
        accompanied = await engine.search_events("parent", "interrupted")
        completed = await engine.list_events("parent")
    assert [event.type for event in listed][-2:] == ["step/end", "turn/end"]
    assert [event.type for event in completed][-3:] == ["subagent/catalog", "step/end", "turn/end"]
    assert [hit.seq for hit in alone.items] == [listed[-1].seq]
    assert [hit.seq for hit in accompanied.items] == [completed[-1].seq]


@pytest.mark.anyio
async def test_a_fork_of_an_older_session_is_traced_to_it(tmp_path: Path) -> None:
    write(tmp_path, "old", 0, OPEN_TURN)
    marker = {"type": "session/end-seed", "data": {"inherited": True}}
    write(tmp_path, "fork", 4, [marker], parentSession="old", isSeeded=True)
    options = EngineOptions(home=str(tmp_path), index_path=":memory:")
    async with SessionQueryEngine(options) as engine:
        trace = await engine.trace_session("fork")
        found = await engine.search_sessions("walrus")
    assert [ancestor.header.id for ancestor in trace.ancestors] == ["old"]
    assert trace.ancestors[0].format_status == "migration-required"
    assert [hit.header.id for hit in found.items] == ["old"]


@pytest.mark.anyio
async def test_the_highest_format_in_a_directory_is_the_session(tmp_path: Path) -> None:
    write(tmp_path, "twice", 0, [{"type": "mode/set", "data": {}}])
    write(tmp_path, "twice", 3, [{"type": "plan/mode", "data": {"active": True}}])
    options = EngineOptions(home=str(tmp_path), index_path=":memory:")
    async with SessionQueryEngine(options) as engine:
        events = await engine.list_events("twice")
    assert [event.type for event in events] == ["plan/mode"]


@pytest.mark.anyio
async def test_reading_an_older_log_leaves_its_bytes_alone(tmp_path: Path) -> None:
    write(tmp_path, "old", 0, OPEN_TURN)
    folder = tmp_path / "sessions" / "--w--" / "old"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    options = EngineOptions(home=str(tmp_path), index_path=":memory:")
    async with SessionQueryEngine(options) as engine:
        await engine.read_session("old")
        await engine.search_sessions("walrus")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

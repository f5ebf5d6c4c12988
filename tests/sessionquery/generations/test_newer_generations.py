"""Logs of formats that are too new: left out of listings and searches, but named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.sessionquery.engine import SessionQueryEngine
from dsh_memory.sessionquery.errors import PERSISTENCE_FAILED, SESSION_NOT_FOUND, SessionQueryError
from dsh_memory.sessionquery.model.options import EngineOptions


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def write_log(home: Path, session_id: str, generation: int, rows: list[dict[str, Any]]) -> None:
    name = f"session.v{generation}.jsonl" if generation else "session.jsonl"
    header: dict[str, Any] = {
        "type": "session",
        "version": generation,
        "id": session_id,
        "createdAt": 1,
        "cwd": "/w",
        "delegationDepth": 0,
    }
    if generation >= 2:
        header["isSeeded"] = False
    folder = home / "sessions" / "--w--" / session_id
    folder.mkdir(parents=True, exist_ok=True)
    lines = [header, *({"seq": seq, "time": 10 + seq, **row} for seq, row in enumerate(rows))]
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def open_engine(home: Path) -> SessionQueryEngine:
    return SessionQueryEngine(EngineOptions(home=str(home), index_path=":memory:"))


@pytest.mark.anyio
async def test_a_newer_log_is_named_with_its_version_and_a_remedy(tmp_path: Path) -> None:
    write_log(tmp_path, "known", 4, [])
    write_log(tmp_path, "future", 5, [])
    async with open_engine(tmp_path) as engine:
        listed = await engine.list_sessions()
        page = await engine.search_sessions("anything")
        events = await engine.search_events("known", "anything")
    assert [record.header.id for record in listed] == ["known"]
    for diagnostics in (page.diagnostics, events.diagnostics):
        (notice,) = diagnostics
        assert "--w--/future/session.v5.jsonl" in notice
        assert "format 5" in notice
        assert "update dsh-memory" in notice


@pytest.mark.anyio
async def test_a_newer_log_hides_the_older_one_beside_it(tmp_path: Path) -> None:
    write_log(tmp_path, "twice", 4, [])
    write_log(tmp_path, "twice", 7, [])
    async with open_engine(tmp_path) as engine:
        assert await engine.list_sessions() == ()
        with pytest.raises(SessionQueryError) as missing:
            await engine.list_events("twice")
        with pytest.raises(SessionQueryError) as unknown:
            await engine.observe_session("twice")
    assert missing.value.code == SESSION_NOT_FOUND
    assert unknown.value.code == PERSISTENCE_FAILED


@pytest.mark.anyio
async def test_many_newer_logs_are_named_in_part_and_counted(tmp_path: Path) -> None:
    for number in range(12):
        write_log(tmp_path, f"future-{number:02d}", 5, [])
    async with open_engine(tmp_path) as engine:
        page = await engine.search_sessions("anything")
    assert len(page.diagnostics) == 11
    assert page.diagnostics[-1].startswith("2 more sessions")


@pytest.mark.anyio
async def test_a_store_without_newer_logs_has_no_diagnostics(tmp_path: Path) -> None:
    write_log(tmp_path, "known", 4, [])
    async with open_engine(tmp_path) as engine:
        assert (await engine.search_sessions("anything")).diagnostics == ()

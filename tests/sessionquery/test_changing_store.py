"""The recorded answers around changes of the store and sessions that live in memory only."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from compare import difference
from dsh_memory.sessionquery.engine import SessionQueryEngine
from dsh_memory.sessionquery.live import LiveSession, LiveSessions
from dsh_memory.sessionquery.model.options import EngineOptions
from dsh_memory.sessionquery.model.sessions import SessionHeader
from test_recorded_answers import answered

NEWER_SESSION = "340"
"""The original lets a sessions cursor go stale when a session appears. Here the page continues as
of its first page when, as in this case, the new session has only later events."""


def change_store(root: Path, case: dict[str, Any]) -> None:
    path = root / case["args"]["path"]
    data = base64.b64decode(case["args"].get("base64", ""))
    match case["op"]:
        case "fsWrite":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        case "fsAppend":
            with path.open("ab") as handle:
                handle.write(data)
        case "fsRm":
            shutil.rmtree(path)
        case other:
            raise AssertionError(other)


def change_live(live: LiveSessions, case: dict[str, Any], later: list[dict[str, Any]]) -> None:
    """Do what the recorded program did: it logged three settings first and a title afterwards."""
    args, told = case["args"], case["ok"]
    if case["op"] == "liveCreate":
        header = told["header"]
        session = live.add(
            LiveSession(
                SessionHeader(
                    id=header["id"],
                    created_at=header["createdAt"],
                    is_seeded=header["isSeeded"],
                    delegation_depth=None,
                    cwd=header["cwd"],
                )
            )
        )
        for kind in ("permission/preset", "sandbox/mode", "approval/policy"):
            session.append(kind, {}, time=header["createdAt"])
        return
    session_or_none = live.get(args["id"])
    assert session_or_none is not None
    event = session_or_none.append(
        args["type"], args["data"], time=told["time"], surface_op=args["opts"]["surfaceOp"]
    )
    assert event == told
    title = next(entry for entry in later if entry["op"] == "observeSession")["ok"]["tail"][-1]
    session_or_none.append(title["type"], title["data"], time=title["time"])


@pytest.mark.anyio
async def test_answers_follow_the_changes_of_a_store(recorded: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(recorded / "home-a", home)
    lines = (recorded / "cases-a.jsonl").read_text("utf-8").rstrip("\n").split("\n")
    cases = [json.loads(line) for line in lines]
    first = next(n for n, case in enumerate(cases) if case["op"] == "fsWrite")
    cases = cases[first - 2 :]
    live = LiveSessions()
    cursors: dict[str, str] = {}
    wrong: list[str] = []
    options = EngineOptions(home=str(home), index_path=":memory:")
    async with SessionQueryEngine(options, live=live) as engine:
        for n, case in enumerate(cases):
            if case["op"].startswith("fs"):
                change_store(home / "sessions", case)
            elif case["op"].startswith("live"):
                change_live(live, case, cases[n:])
            else:
                answer = await answered(engine, case, cursors)
                if case["id"] == NEWER_SESSION:
                    shown = [hit["header"]["id"] for hit in answer["ok"]["items"]]
                    assert shown
                    assert "a-new-100" not in shown
                    continue
                reason = difference(case, answer)
                if reason is not None:
                    wrong.append(f"{case['id']} {case['op']}: {reason}")
    assert not wrong, "\n".join(wrong)
    assert len(cases) == 21

"""The judge: every recorded answer of document 000's own program on the real engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.pipeline.jsonl import answer_lines
from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.runtime.config.settings import Settings
from dsh_memory.sessionquery.engine import SessionQueryEngine
from dsh_memory.sessionquery.model.options import EngineOptions

CASES = Path(__file__).parents[2] / "data" / "recall"
OURS = ("jev", "note_path", "diagnostics", "unreadable_sessions", "excluded_echoes")


def disagreement(case: dict[str, Any], answer: dict[str, Any]) -> str | None:
    """Return how `answer` differs from the recorded one; messages and cursors' text are free."""
    if "error" in case:
        want = case["error"].get("code") or ""
        got = answer.get("error", {}).get("code", "an answer")
        refused = want == "REFUSED" and got.startswith("REQUEST_")
        return None if refused or want == got else f"{want} expected, got {got}"
    if "error" in answer:
        return f"an answer expected, got {answer['error']}"
    value = {name: item for name, item in answer["ok"].items() if name not in OURS}
    if "next_cursor" in value:
        value["next_cursor"] = "$cursor"
    if "results" in value:
        value["results"] = [
            {name: item for name, item in hit.items() if name not in ("noul", "echo")}
            for hit in value["results"]
        ]
    return None if value == case["ok"] else f"{case['ok']} expected, got {value}"


@pytest.mark.anyio
@pytest.mark.parametrize(("letter", "count"), [("a", 357), ("b", 459), ("c", 316)])
async def test_every_recorded_answer_is_given(
    letter: str, count: int, recorded_home: Callable[[str], Path], tmp_path: Path
) -> None:
    lines = (CASES / f"recall-{letter}.jsonl").read_text("utf-8").rstrip("\n").split("\n")
    cases = [json.loads(line) for line in lines]
    assert len(cases) == count
    options = EngineOptions(
        home=str(recorded_home(letter)), index_path=str(tmp_path / "index.sqlite3")
    )
    async with SessionQueryEngine(options) as engine:
        memory = MemoryWorkflow(engine, Settings())
        answers = [answer async for answer in answer_lines(memory, lines)]
    assert [answer["id"] for answer in answers] == [case["id"] for case in cases]
    wrong = {
        case["id"]: why
        for case, answer in zip(cases, answers, strict=True)
        if (why := disagreement(case, answer)) is not None
    }
    assert wrong == {}

"""The judge: every recorded answer of the real engine, on whole and on damaged stores."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any, Literal

import pytest
from compare import difference
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.sessionquery.engine import SessionQueryEngine
from dsh_memory.sessionquery.model.options import EngineOptions
from dsh_memory.sessionquery.operations import run_operation

DATA = Path(__file__).resolve().parent.parent / "data"
DIFFERENCES: dict[str, dict[str, str]] = json.loads((DATA / "differences.json").read_text("utf-8"))


def damaged_names() -> list[str]:
    with tarfile.open(DATA / "damaged-homes.tar.gz") as archive:
        names = (member.name for member in archive.getmembers() if member.isdir())
        return sorted(name for name in names if "/" not in name)


DAMAGED = damaged_names()


def filled(value: Any, cursors: dict[str, str]) -> Any:
    """Put in the cursors of earlier answers; one that there was not is left out."""
    if isinstance(value, dict):
        wanted = {
            key: entry
            for key, entry in value.items()
            if not (isinstance(entry, dict) and entry.get("$cursorOf", "") not in {"", *cursors})
        }
        return {
            key: cursors[entry["$cursorOf"]]
            if isinstance(entry, dict) and "$cursorOf" in entry
            else filled(entry, cursors)
            for key, entry in wanted.items()
        }
    if isinstance(value, list):
        return [filled(entry, cursors) for entry in value]
    return value


async def answered(
    engine: SessionQueryEngine, case: dict[str, Any], cursors: dict[str, str]
) -> dict[str, Any]:
    args = dict(case["args"])
    aborted = args.pop("$aborted", False)
    try:
        value = await run_operation(engine, case["op"], filled(args, cursors), aborted=aborted)
    except DshMemoryError as error:
        return {"error": {"code": error.code, "message": error.message}}
    if isinstance(value, dict) and "nextCursor" in value:
        cursors[case["id"]] = value["nextCursor"]
    return {"ok": value}


async def disagreements(
    home: Path, cases: Path, *, open_at: Literal["first-search", "never"] = "first-search"
) -> tuple[int, list[str]]:
    excused = DIFFERENCES.get(cases.name, {})
    options = EngineOptions(home=str(home), index_path=":memory:", open_at=open_at)
    cursors: dict[str, str] = {}
    compared, out = 0, []
    async with SessionQueryEngine(options) as engine:
        for line in cases.read_text("utf-8").rstrip("\n").split("\n"):
            case = json.loads(line)
            if case["op"].startswith(("fs", "live")):
                break
            if case["op"].startswith("persistence") or "*" in excused or case["id"] in excused:
                continue
            answer = await answered(engine, case, cursors)
            compared += 1
            reason = difference(case, answer)
            if reason is not None:
                out.append(f"{case['id']} {case['op']} {json.dumps(case['args'])}: {reason}")
    return compared, out


@pytest.mark.anyio
@pytest.mark.parametrize(("letter", "count"), [("a", 335), ("b", 279), ("c", 393)])
async def test_every_answer_on_a_whole_store_agrees(
    letter: str, count: int, recorded: Path
) -> None:
    compared, wrong = await disagreements(
        recorded / f"home-{letter}", recorded / f"cases-{letter}.jsonl"
    )
    assert not wrong, "\n".join(wrong[:5])
    assert compared == count


@pytest.mark.anyio
async def test_searches_are_refused_when_the_index_is_never_opened(recorded: Path) -> None:
    compared, wrong = await disagreements(
        recorded / "home-a", recorded / "cases-a-never.jsonl", open_at="never"
    )
    assert not wrong, "\n".join(wrong)
    assert compared == 4


@pytest.mark.anyio
@pytest.mark.parametrize("name", DAMAGED)
async def test_every_answer_on_a_damaged_store_agrees(name: str, recorded: Path) -> None:
    damage = recorded / "damage"
    compared, wrong = await disagreements(damage / name, damage / f"{name}.cases.jsonl")
    assert not wrong, "\n".join(wrong[:5])
    assert compared > 0 or f"{name}.cases.jsonl" in DIFFERENCES


def test_there_are_as_many_damaged_stores_as_recorded() -> None:
    assert len(DAMAGED) == 87


def test_only_mixed_encodings_are_excused() -> None:
    assert set(DIFFERENCES) == {"p-opposite.cases.jsonl", "z-opposite.cases.jsonl"}
    assert all(reason for file in DIFFERENCES.values() for reason in file.values())

"""Stores of generations 0 to 3: the answers that the real engine gave must be ours."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from compare import cases, difference
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.sessionquery.engine import SessionQueryEngine
from dsh_memory.sessionquery.model.options import EngineOptions
from dsh_memory.sessionquery.operations import OPERATIONS, run_operation

DATA = Path(__file__).resolve().parents[2] / "data"

EXPLAINED = {
    ("v0-npm", "readTitleSnapshots"): "the rejections carry the original's messages, ours differ",
}


def stores(archive: str) -> list[str]:
    with tarfile.open(DATA / archive) as opened:
        names = [Path(name).name for name in opened.getnames() if name.endswith(".cases.jsonl")]
    return sorted(name.removesuffix(".cases.jsonl") for name in names)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def answer(
    engine: SessionQueryEngine, case: dict[str, Any], cursors: dict[str, str | None]
) -> dict[str, Any]:
    args = dict(case["args"])
    cursor = args.get("cursor")
    if isinstance(cursor, dict):
        args["cursor"] = cursors.get(cursor["$cursorOf"])
        if args["cursor"] is None:
            del args["cursor"]
    try:
        value = await run_operation(engine, case["op"], args)
    except DshMemoryError as error:
        return {"error": {"code": error.code}}
    if isinstance(value, dict):
        cursors[case["id"]] = value.get("nextCursor")
    return {"ok": json.loads(json.dumps(value))}


@pytest.mark.anyio
@pytest.mark.parametrize("name", stores("old-homes.tar.gz") + stores("old-edges.tar.gz"))
async def test_every_recorded_answer_of_an_old_store_agrees(old_stores: Path, name: str) -> None:
    differences: list[str] = []
    cursors: dict[str, str | None] = {}
    options = EngineOptions(home=str(old_stores / name), index_path=":memory:")
    async with SessionQueryEngine(options) as engine:
        recorded = cases(old_stores / f"{name}.cases.jsonl", skip=set(), operations=set(OPERATIONS))
        for case in recorded:
            if (name, case["op"]) in EXPLAINED:
                continue
            reason = difference(case, await answer(engine, case, cursors))
            if reason is not None:
                differences.append(f"{case['id']} {case['op']} {case['args']}: {reason}")
    assert not differences, "\n".join(differences[:5])

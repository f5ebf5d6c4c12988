"""The judge: every recorded answer of the real engine, on whole and on damaged stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from compare import difference

from runtime.errors import DshMemoryError
from sessionquery.engine import SessionQueryEngine
from sessionquery.model import EngineOptions
from sessionquery.operations import run_operation

DATA = Path(__file__).resolve().parent.parent / "data"
DIFFERENCES: dict[str, dict[str, str]] = json.loads((DATA / "differences.json").read_text("utf-8"))

DAMAGED = """
    b-append-with-sources b-commanddone b-compaction-over-turn b-crlf-blank-line b-data-array
    b-endseed-plain b-ignorable-known b-replace-extra-key b-replace-later-turnend
    b-replace-notsurface b-replace-reversed b-replace-source-missing-shadowed b-role-mismatch
    b-step-without-turn b-surface-without-turn b-time-negative b-todos-bad b-toolcall-twice
    b-turn-skip b-turnend-openstep h-v0-and-v4 h-v0-hdr h-v0-seeded h-v0-simple h-v2-simple
    h-v3-simple p-bad-json-middle-turnend p-bad-json-tail p-bad-replace p-blank-line p-crash-tools
    p-crlf p-duplicate-id p-empty-file p-error-kinds p-event-extra-key p-extra-files p-flat-legacy
    p-float-seq p-header-array p-header-badjson p-header-bom p-header-extra-key
    p-header-negative-created p-header-no-depth p-header-only p-header-retired
    p-header-seeded-no-marker p-header-v3-in-v4file p-header-v5 p-invalid-utf8 p-no-message-id
    p-no-root p-no-surfaceop p-open-turn p-opposite p-parent-cycle p-parent-missing p-proto-key
    p-replace-ok p-seeded-ok p-seq-gap-tail p-time-string p-title-events p-toolresult-orphan
    p-torn-line p-turn-mismatch p-unknown-block p-unknown-event p-unknown-event-ignorable
    p-unseeded-with-marker p-v5-file p-wrong-dirname z-bad-checksum z-empty-frame z-garbage-tail
    z-header-with-events-frame z-no-checksum z-ok z-opposite z-plain-named-zstd z-skippable-frame
    z-torn-header-frame z-torn-last-5 z-torn-line-in-frame z-torn-magic z-torn-multiblock-90
""".split()


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


def test_all_damaged_stores_are_compared(recorded: Path) -> None:
    present = {path.name for path in (recorded / "damage").iterdir() if path.is_dir()}
    assert present == set(DAMAGED)


def test_only_mixed_encodings_are_excused() -> None:
    assert set(DIFFERENCES) == {"p-opposite.cases.jsonl", "z-opposite.cases.jsonl"}
    assert all(reason for file in DIFFERENCES.values() for reason in file.values())

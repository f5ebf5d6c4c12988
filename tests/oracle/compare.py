#!/usr/bin/env python3
"""Compare our answers with the real engine's: compare.py EXPECTED.jsonl ACTUAL.jsonl [options]

EXPECTED has lines {"id", "op", "args", "ok" | "error"}, ACTUAL {"id", "ok" | "error": {"code", …}}.

Errors are equal if their codes are; where the original threw an untyped error, any error will do.
Of a next cursor only its presence counts. Texts above 800 UTF-16 units were recorded by length and
head, and some operations in a reduced form; complete answers are reduced likewise. For
recall_memory and fetch_session, fields that only we have are left out, and a refusal (``REFUSED``)
is any code outside SESSION_QUERY_. The comparison ends at the first fs…/live… line, because what
follows needs a store that changes. The exit status is 0 if all agree.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PIPELINE = ("recall_memory", "fetch_session")
OURS_ONLY = ("jev", "note_path", "diagnostics", "unreadable_sessions", "excluded_echoes")
# How the original keeps its copy of a session is its own affair.
OBSERVATION_ONLY = ("source", "hasRevision", "projectionKeys", "revision", "projections")


def difference(case: dict[str, Any], answer: dict[str, Any] | None) -> str | None:
    """Return None if `answer` agrees with the recorded `case`, else the reason."""
    if answer is None:
        return "no answer"
    if "error" in case:
        return _error_difference(case["error"], answer)
    if "error" in answer:
        return f"expected an answer, got error {answer['error']}"
    want, got = case["ok"], answer["ok"]
    if isinstance(got, dict):
        got = _as_recorded(case["op"], got)
    if case["op"] == "observeSession":
        want = _without(want, OBSERVATION_ONLY)
        got = _without(got, OBSERVATION_ONLY)
    if not case.get("full") and case["op"] not in PIPELINE:
        got = _shortened(got)
    want, got = _cursors_hidden(want), _cursors_hidden(got)
    if case["op"] == "readTitleSnapshots":
        want, got = _reasons_by_code(want), _reasons_by_code(got)
    if want == got:
        return None
    shown = [json.dumps(value, ensure_ascii=False)[:600] for value in (want, got)]
    return f"want {shown[0]}\n     got {shown[1]}"


def cases(path: Path, *, skip: set[str], operations: set[str]) -> Iterator[dict[str, Any]]:
    """Yield the cases of a file that can be compared without changing the store."""
    for line in path.read_text("utf-8").split("\n"):
        if not line:
            continue
        case = json.loads(line)
        if case["op"].startswith(("fs", "live")):
            return
        wanted = not operations or case["op"] in operations
        if wanted and case["id"] not in skip and not case["op"].startswith("persistence"):
            yield case


def _error_difference(error: dict[str, Any], answer: dict[str, Any]) -> str | None:
    code = error.get("code") or ""
    if "error" not in answer:
        return f"expected error {code or error.get('name')}, got an answer"
    got = answer["error"].get("code") or ""
    if code == "REFUSED":
        refused = got and not got.startswith("SESSION_QUERY_")
        return None if refused else f"expected a refusal, got {got}"
    if code.startswith("SESSION_QUERY_") and code != got:
        return f"expected {code}, got {got}"
    return None


def _as_recorded(operation: str, answer: dict[str, Any]) -> dict[str, Any]:
    events = answer.get("events", [])
    if operation == "observeSession":
        return {
            **{key: answer[key] for key in ("header", "inheritedEventCount", "cursor")},
            "eventCount": len(events),
            "eventTypes": [event["type"] for event in events],
            "tail": events[-2:],
        }
    if operation in PIPELINE:
        reduced = _without(answer, OURS_ONLY)
        if "results" in reduced:
            reduced["results"] = [_without(hit, ("noul", "echo")) for hit in reduced["results"]]
        return reduced
    kept = {"readSession": ("seq", "type", "time"), "readSurface": ("seq", "type", "surfaceOp")}
    if operation in kept:
        names = kept[operation]
        rows = [{name: event[name] for name in names if name in event} for event in events]
        return {**answer, "events": rows}
    return answer


def _without(value: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in names}


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        units = len(value.encode("utf-16-le", "surrogatepass")) // 2
        return {"$len": units, "$head": value[:60]} if units > 800 else value
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    if not isinstance(value, dict):
        return value
    shortened = {}
    for key, item in value.items():
        if key == "tools" and isinstance(item, list) and len(item) > 3:
            shortened[key] = {"$tools": [tool.get("name") for tool in item]}
        elif key == "stream" and isinstance(item, list):
            shortened[key] = {"$stream": len(item)}
        else:
            shortened[key] = _shortened(item)
    return shortened


def _reasons_by_code(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**entry, "reason": entry["reason"].get("code")} if "reason" in entry else entry
        for entry in entries
    ]


def _cursors_hidden(value: Any) -> Any:
    if isinstance(value, list):
        return [_cursors_hidden(item) for item in value]
    if isinstance(value, dict):
        cursors = ("nextCursor", "next_cursor")
        return {
            key: "$cursor" if key in cursors else _cursors_hidden(item)
            for key, item in value.items()
        }
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("expected", type=Path)
    parser.add_argument("actual", type=Path)
    parser.add_argument("--differences", type=Path, help="JSON {file name: {id or *: reason}}")
    parser.add_argument("--ops", default="", help="compare only these, comma separated")
    parser.add_argument("--show", type=int, default=10)
    arguments = parser.parse_args()
    skip: set[str] = set()
    if arguments.differences:
        listed = json.loads(arguments.differences.read_text("utf-8"))
        skip = set(listed.get(arguments.expected.name, {}))
    lines = arguments.actual.read_text("utf-8").split("\n")
    answers = {answer["id"]: answer for answer in map(json.loads, filter(None, lines))}
    compared = (
        []
        if "*" in skip
        else list(
            cases(
                arguments.expected,
                skip=skip,
                operations=set(filter(None, arguments.ops.split(","))),
            )
        )
    )
    wrong = [(case, why) for case in compared if (why := difference(case, answers.get(case["id"])))]
    for case, why in wrong[: arguments.show]:
        request = json.dumps(case["args"], ensure_ascii=False)[:200]
        print(f"{case['id']} {case['op']} {request}\n     {why}")
    print(f"{len(compared) - len(wrong)} of {len(compared)} agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Random stores, random requests, the real engine and ours side by side.

    python tests/differential/differ.py [--stores N] [--requests N] [--seed N]
        [--old | --damaged] [--keep DIR]

Prints every disagreement and a figure, and exits with 1 if there is one. With --old the stores hold
mutated logs of older formats, with --damaged damaged ones of the current format. With --keep the
store, the requests and both answers of each disagreeing seed stay in DIR. Needs the real runtime.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "oracle")]

import compare  # noqa: E402
import damaged_store  # noqa: E402
import dsh  # noqa: E402
import old_store  # noqa: E402
import random_requests  # noqa: E402
import random_store  # noqa: E402


@dataclass(frozen=True)
class Verdict:
    """The outcome of one seed: how many requests, and what disagreed."""

    seed: int
    compared: int
    wrong: list[str]


def judge(seed: int, count: int, folder: Path) -> Verdict:
    """Build the store of `seed` in `folder`, ask both engines `count` requests, and compare."""
    home = folder / "home"
    home.mkdir()
    random_store.build(home, seed)
    return _compared(seed, home, random_requests.requests(home, seed, count), folder)


def judge_old(seed: int, folder: Path) -> Verdict:
    """The same with a store of mutated older logs, and requests about each of them."""
    home = folder / "home"
    home.mkdir()
    return _compared(seed, home, old_store.build(home, seed), folder)


def judge_damaged(seed: int, folder: Path) -> Verdict:
    """The same with a store of damaged logs of the current format."""
    home = folder / "home"
    home.mkdir()
    return _compared(seed, home, damaged_store.build(home, seed), folder)


def _compared(seed: int, home: Path, requests: list[dict[str, Any]], folder: Path) -> Verdict:
    expected = dsh.ask(home, requests)
    answers = ours(home, requests, folder)
    _write(folder / "expected.jsonl", expected)
    wrong = []
    for case in expected:
        why = compare.difference(case, answers.get(case["id"]))
        if why is not None:
            arguments = json.dumps(case["args"], ensure_ascii=False)
            wrong.append(f"seed {seed} request {case['id']} {case['op']} {arguments}\n     {why}")
    return Verdict(seed, len(expected), wrong)


def ours(home: Path, requests: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Return our answers by id, from one ``dsh-memory query`` process with its own index file."""
    path = folder / "requests.jsonl"
    _write(path, requests)
    command = [
        sys.executable,
        "-m",
        "dsh_memory.interfaces.cli",
        "query",
        "--home",
        str(home),
        str(path),
    ]
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("DSH_")},
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"dsh-memory query failed: {done.stderr.decode(errors='replace')}")
    (folder / "actual.jsonl").write_bytes(done.stdout)
    lines = done.stdout.decode("utf-8").split("\n")
    return {answer["id"]: answer for answer in map(json.loads, filter(None, lines))}


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
    path.write_text(text, "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stores", type=int, default=40)
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--old", action="store_true", help="mutated logs of older formats")
    parser.add_argument("--damaged", action="store_true", help="damaged logs of this format")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    compared = wrong = 0
    for seed in range(arguments.seed, arguments.seed + arguments.stores):
        folder = Path(tempfile.mkdtemp(prefix="differential-"))
        try:
            if arguments.old:
                verdict = judge_old(seed, folder)
            elif arguments.damaged:
                verdict = judge_damaged(seed, folder)
            else:
                verdict = judge(seed, arguments.requests, folder)
            compared += verdict.compared
            wrong += len(verdict.wrong)
            for text in verdict.wrong:
                print(text)
            if verdict.wrong and arguments.keep:
                shutil.copytree(folder, arguments.keep / str(seed))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{compared - wrong} of {compared} agree over {arguments.stores} stores")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Whole-process time of a warm ``memory-search`` against the smallest comparable process.

    python benchmarks/startup.py [--runs 31]

The baseline imports pydantic, sqlite3 and anyio, defines one model and runs an empty event loop.
Runs alternate; the medians and their ratio are printed. The goal is a ratio of at most 1.5.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = """
import sqlite3
import anyio
from pydantic import BaseModel
class Model(BaseModel):
    number: int
anyio.run(anyio.sleep, 0)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=31)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "XDG_CACHE_HOME": scratch, "XDG_CONFIG_HOME": scratch}
        script = Path(sys.executable).with_name("memory-search")
        search = [str(script), "--home", str(ROOT / "examples" / "sample-home"), "database"]
        baseline = [sys.executable, "-c", BASELINE]
        times: dict[str, list[float]] = {"baseline": [], "memory-search": []}
        for run in range(runs + 2):
            for name, command in (("baseline", baseline), ("memory-search", search)):
                started = time.perf_counter()
                subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
                if run >= 2:  # the first rounds warm the index and the page cache
                    times[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(values) * 1000 for name, values in times.items()}
    for name, value in medians.items():
        print(f"{name:14} {value:7.1f} ms (median of {runs})")
    print(f"ratio          {medians['memory-search'] / medians['baseline']:7.2f}")


if __name__ == "__main__":
    main()

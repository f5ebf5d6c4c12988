#!/usr/bin/env python3
"""Whole-process time of a warm ``memory-search`` against the smallest comparable process.

    python benchmarks/startup.py [--runs 31]

The baseline imports pydantic, sqlite3 and anyio, defines one model and runs an empty event loop.
Runs alternate; the medians of elapsed and CPU time and their ratios are printed. The goal is a
ratio of at most 1.5; on a busy machine the CPU time tells more.
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
    script = Path(sys.executable).with_name("memory-search")
    commands = {
        "baseline": [sys.executable, "-c", BASELINE],
        "memory-search": [
            *(str(script), "--home", str(ROOT / "examples" / "sample-home"), "database")
        ],
    }
    elapsed: dict[str, list[float]] = {name: [] for name in commands}
    used: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "XDG_CACHE_HOME": scratch, "XDG_CONFIG_HOME": scratch}
        # Both start from compiled modules, as an installed program does.
        environment |= {"PYTHONPYCACHEPREFIX": scratch}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for run in range(runs + 2):
            for name, command in commands.items():
                seconds, cpu_seconds = measure(command, environment)
                if run >= 2:  # the first rounds compile the modules and build the index
                    elapsed[name].append(seconds)
                    used[name].append(cpu_seconds)
    for what, times in (("elapsed", elapsed), ("CPU", used)):
        medians = {name: statistics.median(values) * 1000 for name, values in times.items()}
        for name, value in medians.items():
            print(f"{what:8} {name:14} {value:7.1f} ms (median of {runs})")
        print(f"{what:8} ratio          {medians['memory-search'] / medians['baseline']:7.2f}")


def measure(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a command and return its elapsed and its CPU time in seconds."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]} ended with {process.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()

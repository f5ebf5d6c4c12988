#!/usr/bin/env python3
"""Start-up of the MCP server: from the start of the process to the answered ``initialize``.

    python benchmarks/mcp_startup.py [--rounds 9] [--json]

Compares ``dsh-memory mcp`` with the smallest server of the SDK (one tool that returns its
argument),
both over stdio, in turns. Exits with 1 if ours takes more than 1.5 times as long (medians).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

LIMIT = 1.5
SMALLEST = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("smallest")


@server.tool()
def same(text: str) -> str:
    return text


server.run("stdio")
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def seconds_to_answer(command: Sequence[str], folder: Path) -> float:
    """Start a server, send ``initialize``, and return the seconds until its answer."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "DSH_HOME": str(folder / "dsh")}
    started = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=folder,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        elapsed = time.perf_counter() - started
        assert answer["id"] == 1, answer
        assert "result" in answer, answer
        server.stdin.close()
        server.wait(30)
    return elapsed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "smallest.py"
        script.write_text(SMALLEST, "utf-8")
        commands = {
            "smallest": [sys.executable, str(script)],
            "dsh-memory mcp": [sys.executable, "-m", "dsh_memory.interfaces.cli", "mcp"],
        }
        times: dict[str, list[float]] = {what: [] for what in commands}
        for round_number in range(options.rounds + 1):
            for what, command in commands.items():
                elapsed = seconds_to_answer(command, folder)
                if round_number:  # the first round only fills the caches
                    times[what].append(elapsed)
    medians = {what: statistics.median(values) for what, values in times.items()}
    ratio = medians["dsh-memory mcp"] / medians["smallest"]
    if options.json:
        print(json.dumps({"median_seconds": medians, "ratio": ratio, "limit": LIMIT}))
    else:
        for what, median in medians.items():
            print(f"{what:16} {median:.3f} s (fastest {min(times[what]):.3f} s)")
        print(f"ratio            {ratio:.2f} (limit {LIMIT})")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())

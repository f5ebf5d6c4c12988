"""Start the real DSH runtime with the oracle plugin on a scratch copy of a home.

The runtime comes from the package ``deepseek-harness-runtime-bin`` (Linux x86-64). It is asked
through `oracle.mjs`, a plugin that reads requests and writes what ``ctx.sessionQuery`` answers. The
network is not used: the model address is a closed loopback port and telemetry is off.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLUGIN = Path(__file__).resolve().parent / "oracle.mjs"
_QUERY_ROW = {
    "id": "session-query-sqlite",
    "name": "@deepseek-ai/dsh-session-query-sqlite",
}


@dataclass(frozen=True)
class Run:
    """One run of the runtime.

    Attributes:
        status: Exit status; None if it was killed at the time limit.
        started: Seconds since the epoch.
        wall: Seconds.
        peak_bytes: Largest resident set of the process.
        log: What it wrote to stderr, and the plugin's own failure.
    """

    status: int | None
    started: float
    wall: float
    peak_bytes: int
    log: str


def launch_arguments() -> list[str] | None:
    """Return the runtime's command line, or None where its package is not installed."""
    try:
        from deepseek_harness_runtime import resolve_bundled_launch_args
    except ImportError:
        return None
    return list(resolve_bundled_launch_args())


def profile_of(home: Path) -> str:
    """Return the profile for the store's encoding: ``sdk`` for zstd, else ``sdk-minimal``."""
    note = home / "home.json"
    if note.is_file():
        zstd = json.loads(note.read_text("utf-8"))["compression"] == "zstd"
    else:
        names = [path.name for path in (home / "sessions").rglob("*.jsonl*")]
        zstd = sum(name.endswith(".zstd") for name in names) * 2 > len(names)
    return "sdk" if zstd else "sdk-minimal"


def ask(home: Path, requests: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    """Return the real engine's answers to `requests`, in order.

    Raises:
        RuntimeError: The runtime failed; the message has the end of its log.
    """
    with tempfile.TemporaryDirectory(prefix="dsh-oracle-") as scratch:
        questions, answers = Path(scratch) / "requests.jsonl", Path(scratch) / "answers.jsonl"
        questions.write_text("".join(json.dumps(request) + "\n" for request in requests), "utf-8")
        run = run_files(home, questions, answers, **options)
        if run.status != 0:
            raise RuntimeError(f"the runtime ended with {run.status}: {run.log[-3000:]}")
        lines = answers.read_text("utf-8").split("\n")
        return [json.loads(line) for line in lines if line]


def run_files(
    home: Path,
    requests: Path,
    answers: Path,
    *,
    profile: str | None = None,
    open_at: str = "first-search",
    timeout: float = 600,
    timed: bool = False,
) -> Run:
    """Let the real engine answer the request lines of a file; `home` itself is never written."""
    command = launch_arguments()
    if command is None:
        raise RuntimeError("deepseek-harness-runtime-bin is not installed")
    profile = profile or profile_of(home)
    answers = answers.absolute()
    fatal = answers.with_name(answers.name + ".fatal")
    with tempfile.TemporaryDirectory(prefix="dsh-oracle-home-") as name:
        scratch = Path(name)
        copy = scratch / "home"
        copy.mkdir()
        if (home / "sessions").is_dir():
            shutil.copytree(home / "sessions", copy / "sessions", symlinks=True)
        patch = scratch / "oracle.patch.yml"
        patch.write_text(json.dumps(_patch(profile, open_at)), "utf-8")
        environment = {
            **os.environ,
            "DSH_HOME": str(copy),
            "DSH_TELEMETRY_MODE": "DISABLED",
            "ORACLE_REQ": str(requests.absolute()),
            "ORACLE_OUT": str(answers),
            "ORACLE_TIMED": "1" if timed else "0",
            "DEEPSEEK_API_KEY": "unused",
            "DEEPSEEK_BASE_URL": "http://127.0.0.1:9",
        }
        arguments = [*command, "--profile", profile, "--patch", str(patch)]
        return _run(arguments, environment, scratch, fatal, timeout)


def _patch(profile: str, open_at: str) -> list[dict[str, Any]]:
    row = {**_QUERY_ROW, "config": {"path": ":memory:", "openAt": open_at}}
    # JSON is YAML; the minimal profile has no query row yet, so there it is inserted.
    query: dict[str, Any] = {"insert": [row]} if profile == "sdk-minimal" else row
    return [query, {"insert": [{"id": "query-oracle", "name": PLUGIN.as_uri()}]}]


def _run(
    arguments: list[str], environment: dict[str, str], scratch: Path, fatal: Path, timeout: float
) -> Run:
    started = time.time()
    with (scratch / "stderr").open("w+b") as errors:
        # stdin stays open: its end would shut the runtime down.
        child = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
            cwd=scratch,
        )
        status, usage = _wait(child, started + timeout)
        if child.stdin is not None:
            child.stdin.close()
        errors.seek(0)
        log = errors.read().decode("utf-8", "replace")
    if fatal.exists():
        log += "\n" + fatal.read_text("utf-8")
    return Run(status, started, time.time() - started, usage.ru_maxrss * 1024, log)


def _wait(child: subprocess.Popen[bytes], deadline: float) -> tuple[int | None, Any]:
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, usage
        if time.time() > deadline:
            child.kill()
            _, _, usage = os.wait4(child.pid, 0)
            child.returncode = -9
            return None, usage
        time.sleep(0.01)

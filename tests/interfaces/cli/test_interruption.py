"""Signals at the moments at which nothing of ours is listening yet, or something is still busy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Interrupts the process while it imports a module, and goes on with that for a long time.
DURING_IMPORT = """
import importlib.abc, os, signal, sys, threading, time

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == MODULE:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0 if threading.current_thread() is threading.main_thread() else 60)

MODULE = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupting())
from dsh_memory.interfaces.cli.main import main
main()
"""


def interrupted_at(command: Any, module: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", DURING_IMPORT, module, *words],
        env=command.environment,
        capture_output=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("module", ["click", "click.core", "dsh_memory.interfaces.cli.output"])
def test_an_interrupt_during_the_first_imports_is_quiet(command: Any, module: str) -> None:
    done = interrupted_at(command, module, "search", "database")
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize(
    "module", ["pydantic", "dsh_memory.sessionquery.engine", "dsh_memory.pipeline.memory.results"]
)
def test_an_interrupt_during_later_imports_shows_no_traceback(command: Any, module: str) -> None:
    done = interrupted_at(command, module, "search", "database")
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"")


def test_an_interrupt_does_not_wait_for_the_import_of_the_sdk(command: Any) -> None:
    words = ["--jev", "--set", "jev.context_window=8192", "--question", "which database?"]
    done = interrupted_at(command, "openai", "search", *words, "database")
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_wait_for_requests_can_be_interrupted(command: Any, tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    os.mkfifo(requests)
    process = command.start("query", str(requests), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with requests.open("w"):  # returns when the other side has opened it
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr.strip()) == (130, b"", b"")


def test_answers_before_an_interrupt_are_not_lost(
    command: Any, silent_server: Any, tmp_path: Path
) -> None:
    asked = {"query": "database", "question": "which database?"}
    requests = [
        {"id": 1, "op": "readTitle", "args": {"sessionId": "scratch-0001"}},
        {"id": 2, "op": "recall_memory", "args": asked},
    ]
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))
    settings = ["jev.enabled=true", "jev.context_window=8192", f"jev.base_url={silent_server.url}"]
    words = [word for setting in settings for word in ("--set", setting)]
    process = command.start(
        "query", *words, str(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert silent_server.called.wait(30)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (130, b"")
    assert [json.loads(line)["id"] for line in stdout.splitlines()] == [1]


def test_a_signal_that_is_switched_off_stays_off(command: Any, silent_server: Any) -> None:
    words = ["--jev", "--set", "jev.context_window=8192", "--question", "which database?"]
    words += ["--set", f"jev.base_url={silent_server.url}", "database"]
    process = command.start(
        *("search", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert silent_server.called.wait(30)
    process.send_signal(signal.SIGHUP)  # as after `nohup`
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143

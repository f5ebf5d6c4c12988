"""What a person sees of long work: a bar on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

FAKE_OLLAMA = Path(__file__).parents[2] / "fake_ollama" / "ollama"
BATCHES = """
import time
from dsh_memory.interfaces.cli.progress import TerminalProgress
with TerminalProgress() as progress:
    progress.batches(0, 7)
    progress.batches(3, 7)
    time.sleep(60)
"""


@pytest.fixture
def managed(command: Any, tmp_path: Path) -> Callable[..., list[str]]:
    """Order a pull from the fake Ollama; returns the words of a search that needs it."""

    def order(pull: str) -> list[str]:
        directory = tmp_path / "bin"
        directory.mkdir()
        (directory / "ollama").symlink_to(FAKE_OLLAMA)
        (directory / "faults.json").write_text(json.dumps({"missing": True, "pull": pull}))
        command.environment["PATH"] = f"{directory}{os.pathsep}{os.environ['PATH']}"
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            port = reserved.getsockname()[1]
        words = ["search", "--question", "Which database?", "--jev"]
        for setting in ("manage_ollama=true", f"base_url=http://127.0.0.1:{port}"):
            words += ["--set", f"jev.{setting}"]
        return [*words, "database"]

    return order


@contextlib.contextmanager
def on_a_terminal(
    arguments: Sequence[str], environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[str], str]]]:
    """Run a process on a terminal; the function reads until what is shown matches a pattern."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        arguments,
        env=environment | {"TERM": "xterm", "COLUMNS": "140"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    shown = b""

    def until(pattern: str) -> str:
        nonlocal shown
        while True:
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode("utf-8", "replace"))
            if re.search(pattern, text):
                return text
            shown += os.read(controller, 65536)

    try:
        yield process, until
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        os.close(controller)


def test_a_pull_shows_bytes_and_speed_on_a_terminal(
    command: Any, managed: Callable[..., list[str]]
) -> None:
    words = managed("hangs")
    with on_a_terminal(command.arguments(*words), command.environment) as (_, until):
        until(r"pulling abc\W.*60/100 bytes +(\?|[0-9.]+ \w+/s)")


def test_scoring_shows_its_batches_on_a_terminal(command: Any) -> None:
    arguments = [sys.executable, "-c", BATCHES]
    with on_a_terminal(arguments, command.environment) as (_, until):
        until(r"Scoring batches\W.*3/7")


def test_elsewhere_a_pull_is_told_in_plain_lines(
    command: Any, managed: Callable[..., list[str]]
) -> None:
    done = command(*managed("backwards"))
    assert done.status == 0
    assert "\x1b" not in done.stderr
    told = done.stderr.splitlines()
    assert "Starting `ollama serve`." in told
    assert "Model: pulling manifest" in told
    assert told.count("Model: pulling abc") == 1
    assert "Model: success" in told


def test_quiet_means_not_a_word_of_it(command: Any, managed: Callable[..., list[str]]) -> None:
    done = command(*managed("ok"), "--quiet")
    assert done.status == 0
    assert done.stderr == ""

"""Standard streams that are closed, full or left by their reader."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

FULL = Path("/dev/full")
full_device = pytest.mark.skipif(not FULL.exists(), reason="there is no device that is full")
UNBUFFERED = [{}, {"PYTHONUNBUFFERED": "1"}]


def run(command: Any, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    environment = {**command.environment, **options.pop("environment", {})}
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        command.arguments(*words), env=environment, timeout=60, check=False, **options
    )


def closing(*numbers: int) -> Any:
    return lambda: [os.close(number) for number in numbers]


@pytest.mark.parametrize("numbers", [(0,), (1,), (2,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("search", "database"), 0),
        (("search", "--json", "--limit", "0", "x"), 2),
        (("search", "--help"), 0),
        (("--version",), 0),
        (("query", "-"), 0),
    ],
)
def test_a_closed_stream_is_as_good_as_dev_null(
    command: Any, words: tuple[str, ...], status: int, numbers: tuple[int, ...]
) -> None:
    open_ones = {
        name: subprocess.PIPE
        for number, name in ((1, "stdout"), (2, "stderr"))
        if number not in numbers
    }
    done = run(command, *words, preexec_fn=closing(*numbers), **open_ones)
    assert done.returncode == status
    assert b"INTERNAL" not in (done.stderr or b"")
    assert b"Traceback" not in (done.stderr or b"")


def test_a_file_of_ours_never_becomes_the_closed_stderr(command: Any) -> None:
    vault = command.folder / "vault"
    vault.mkdir()
    words = ["search", "--obsidian", "--set", f"obsidian.vault_path={vault}", "database"]
    assert run(command, *words, preexec_fn=closing(0, 1, 2)).returncode == 0
    (note,) = vault.iterdir()
    assert note.read_text("utf-8").startswith("---\n")


@full_device
@pytest.mark.parametrize("environment", UNBUFFERED)
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("search", "database"), 1),
        (("search", "--json", "database"), 1),
        (("search", "--json", "--limit", "0", "x"), 2),
        (("search", "--help"), 1),
        (("--version",), 1),
        (("config", "show"), 1),
    ],
)
def test_a_full_disk_behind_stdout_is_told_on_stderr(
    command: Any, words: tuple[str, ...], status: int, environment: dict[str, str]
) -> None:
    with FULL.open("wb") as full:
        done = run(command, *words, stdout=full, stderr=subprocess.PIPE, environment=environment)
    assert done.returncode == status
    assert (b"REQUEST_INVALID" if status == 2 else b"No space left") in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@full_device
def test_a_diagnostic_that_cannot_be_written_changes_nothing(command: Any) -> None:
    with FULL.open("wb") as full:
        found = run(
            command,
            *("search", "--json", "--set", "index.path=/proc/none/index.sqlite3", "database"),
            stdout=subprocess.PIPE,
            stderr=full,
        )
        refused = run(command, "search", "--limit", "0", "x", stderr=full)
    assert found.returncode == 0
    assert b'"diagnostics"' in found.stdout
    assert refused.returncode == 2


@pytest.mark.parametrize("environment", UNBUFFERED)
@pytest.mark.parametrize(
    "words",
    [
        ("search", "database"),
        ("search", "--json", "--limit", "0", "x"),
        ("search", "--help"),
        ("--version",),
        ("sessions",),
        ("config", "show"),
    ],
)
def test_every_output_ends_quietly_at_a_closed_pipe(
    command: Any, words: tuple[str, ...], environment: dict[str, str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(command, *words, stdout=writing, stderr=subprocess.PIPE, environment=environment)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_error_never_repeats_all_of_a_long_argument(command: Any) -> None:
    long = "a" * 100_000
    for words in (["--limit", long, "x"], [f"--{long}"], ["--config", f"/{long}", "x"]):
        refused = command("search", "--json", *words)
        assert refused.status == 2
        assert len(refused.stdout) < 5000
        assert len(command("search", *words).stderr) < 500

"""What reaches the terminal, how failures look, and how a run ends early."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

HOSTILE = "before [/login] [bold] \x1b]0;title\x07 \x1b[31mred\x1b[0m \x9b2J \u202eabc after"


def test_control_characters_in_history_are_inert(command: Any, write_session: Any) -> None:
    write_session(command.home, "hostile", HOSTILE)
    text = command("search", "login").stdout
    assert "[/login] [bold]" in text
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    assert "␛[31mred" in text
    as_json = command("search", "--json", "login")
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(as_json.stdout)
    assert as_json.json["results"][0]["snippet"] == HOSTILE


def test_control_characters_are_inert_on_a_real_terminal(command: Any, write_session: Any) -> None:
    write_session(command.home, "hostile", HOSTILE)
    controller, terminal = pty.openpty()
    process = command.start("search", "login", stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = b""
    while True:
        try:
            piece = os.read(controller, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(controller)
    assert process.wait(timeout=30) == 0
    assert b"[/login] [bold]" in shown
    assert b"\x1b]0;" not in shown
    assert b"\x1b[31m" not in shown


def test_a_closed_pipe_is_quiet(command: Any) -> None:
    process = command.start("search", "database", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) == 141
    assert errors == b""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["search", "--json", "--limit", "many", "x"], "REQUEST_OPTION"),
        (["search", "x", "--no-such-option", "--json"], "REQUEST_OPTION"),
        (["--json", "nothing-like-this"], "REQUEST_OPTION"),
        (["search", "--json", "--limit", "51", "x"], "REQUEST_INVALID"),
        (["search", "--json"], "REQUEST_INVALID"),
        (["search", "--json", "{broken"], "REQUEST_INVALID"),
        (["search", "--json", '{"query": "x", "entities": []}'], "REQUEST_INVALID"),
        (["search", "--json", "--set", "jev.nonsense=1", "x"], "CONFIG_UNKNOWN_KEY"),
        (["search", "--json", "--set", "jev.context_window=12", "x"], "CONFIG_INVALID"),
        (["review", "--json", "--question", "why?", "x"], "REQUEST_JEV_DISABLED"),
    ],
)
def test_refusals_are_one_json_document_and_exit_with_two(
    command: Any, words: list[str], code: str
) -> None:
    refused = command(*words)
    assert refused.status == 2
    error = refused.json["error"]
    assert error["code"] == code
    assert set(error) == {"code", "message", "hint", "retryable"}


def test_refusals_as_text_go_to_stderr_only(command: Any) -> None:
    refused = command("search", "--limit", "99", "x")
    assert refused.status == 2
    assert refused.stdout == ""
    assert "REQUEST_INVALID" in refused.stderr
    assert len(refused.stderr) < 500


def test_cursor_errors_exit_with_three(command: Any) -> None:
    page = command("search", "--json", "--limit", "2", "database").json
    other = command("search", "--json", "--limit", "2", "--cursor", page["next_cursor"], "tide")
    assert (other.status, other.json["error"]["code"]) == (3, "SESSION_QUERY_INVALID_CURSOR")


def test_an_unknown_session_exits_with_one(command: Any) -> None:
    missing = command("read", "--json", "nobody", "0")
    assert (missing.status, missing.json["error"]["code"]) == (1, "SESSION_QUERY_SESSION_NOT_FOUND")


def test_a_refused_connection_exits_with_four(command: Any, unused_port: int) -> None:
    words = ["--jev", "--set", "jev.context_window=8192", "--question", "which database?"]
    words += ["--set", f"jev.base_url=http://127.0.0.1:{unused_port}", "--json", "database"]
    refused = command("search", *words)
    assert refused.status == 4
    assert refused.json["error"]["code"].startswith("JEV_")


def test_a_missing_vault_exits_with_five(command: Any, tmp_path: Path) -> None:
    vault = f"obsidian.vault_path={tmp_path / 'nowhere'}"
    refused = command("search", "--obsidian", "--set", vault, "--json", "database")
    assert refused.status == 5
    assert refused.json["error"]["code"].startswith("OBSIDIAN_")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_during_a_model_call_ends_the_run(
    command: Any, silent_server: Any, number: signal.Signals, status: int
) -> None:
    words = ["--jev", "--set", "jev.context_window=8192", "--question", "which database?"]
    words += ["--set", f"jev.base_url={silent_server.url}", "database"]
    process = command.start("search", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert silent_server.called.wait(30)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=10)
    assert process.returncode == status
    assert stdout == b""
    assert b"Traceback" not in stderr


@pytest.fixture
def unused_port() -> int:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return server.server_port


def test_a_search_without_a_model_imports_nothing_expensive(command: Any) -> None:
    script = (
        "import sys\n"
        "from dsh_memory.interfaces.cli import commands\n"
        "status = commands.run(commands.load('search'), ['database'], program='x')\n"
        "heavy = {'openai', 'ollama', 'httpx', 'httpx2', 'mcp', 'rich', 'starlette', 'uvicorn',\n"
        "         'tomlkit', 'fastapi', 'flask'} & set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else status)\n"
    )
    done = subprocess.run(
        [command.arguments()[0], "-c", script],
        env=command.environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def test_status_has_no_effect(command: Any) -> None:
    before = sorted(map(str, command.folder.rglob("*")))
    status = command("status", "--json")
    assert status.status == 0
    assert json.dumps(status.json)
    assert sorted(map(str, command.folder.rglob("*"))) == before

"""A change that is saved on the page reaches a running agents' server at once."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SAMPLE_HOME = Path(__file__).resolve().parents[3] / "examples" / "sample-home"


class HangingModel(ThreadingHTTPServer):
    """Takes a scoring request, never answers, and notices when its client gives up."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.left = threading.Event()
        super().__init__(("127.0.0.1", 0), _Hang)


class _Hang(BaseHTTPRequestHandler):
    server: HangingModel

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.set()
        self.connection.settimeout(60)
        with contextlib.suppress(OSError):
            if self.connection.recv(1) == b"":
                self.server.left.set()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def model() -> Iterator[HangingModel]:
    server = HangingModel()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


class Agent:
    """An agent's client: lines over the server's stdin and stdout."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == number:
                return message
        raise AssertionError("the server closed its output")

    def start(self) -> None:
        parameters = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        self.send(id=0, method="initialize", params=parameters)
        self.answer(0)
        self.send(method="notifications/initialized")

    def ask(self, number: int) -> None:
        arguments = {"query": "database", "question": "Which database did we choose?"}
        call = {"name": "recall_memory", "arguments": arguments}
        self.send(id=number, method="tools/call", params=call)


@pytest.fixture
def agent(environ: dict[str, str], home: Path) -> Iterator[Agent]:
    shutil.copytree(SAMPLE_HOME, home / "dsh")
    process = subprocess.Popen(
        [sys.executable, "-m", "dsh_memory.interfaces.cli", "mcp"],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield Agent(process)
    process.kill()
    process.communicate()


def test_save_cancels_the_running_call_and_the_next_uses_the_new_settings(
    serve: Any, open_tab: Any, agent: Agent, model: HangingModel, home: Path
) -> None:
    vault = home / "vault"
    vault.mkdir()
    server = serve(
        f"[jev]\nenabled = true\ncontext_window = 8192\n"
        f'base_url = "http://127.0.0.1:{model.server_port}"\n'
        f'[obsidian]\nenabled = true\nvault_path = "{vault}"\n'
    )
    tab = open_tab(server.url)
    agent.start()
    agent.ask(1)
    assert model.asked.wait(60)
    assert not model.left.is_set()  # the page looked, and nothing happened to the call

    tab.uncheck("#field-jev-enabled")
    tab.click("#save")
    tab.wait_for_selector(".notice.ok")

    refused = agent.answer(1)["result"]
    assert refused["isError"]
    assert "CONFIG_CHANGED" in refused["content"][0]["text"]
    assert model.left.wait(10)
    assert list(vault.iterdir()) == []

    model.asked.clear()
    agent.ask(2)
    accepted = agent.answer(2)["result"]
    assert not accepted.get("isError")
    assert "jev" not in accepted["structuredContent"]
    assert accepted["structuredContent"]["results"]
    assert not model.asked.is_set()
    assert len(list(vault.iterdir())) == 1

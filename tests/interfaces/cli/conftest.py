"""A command line in its own process, on a private copy of the sample home."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Finished:
    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@dataclass
class CommandLine:
    """Runs ``dsh-memory`` commands with a private home, cache and configuration."""

    folder: Path
    home: Path
    environment: dict[str, str]

    def arguments(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "dsh_memory.interfaces.cli", *words]

    def __call__(self, *words: str, **changes: str) -> Finished:
        done = subprocess.run(
            self.arguments(*words),
            env={**self.environment, **changes},
            cwd=self.folder,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Finished(
            done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "replace")
        )

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.arguments(*words), env=self.environment, cwd=self.folder, **options
        )


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    home = tmp_path / "dsh-home"
    shutil.copytree(ROOT / "examples" / "sample-home", home)
    kept = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTHONPATH", "COVERAGE_PROCESS_START")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {
        "HOME": str(tmp_path / "user"),
        "DSH_HOME": str(home),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PYTHONUTF8": "1",
    }
    (tmp_path / "user").mkdir()
    return CommandLine(tmp_path, home, environment)


@pytest.fixture
def write_session() -> Callable[..., Path]:
    """Write a plain one-turn session whose user message is `text`."""

    def write(home: Path, session_id: str, text: str, cwd: str = "/w/one") -> Path:
        header = {"type": "session", "version": 4, "id": session_id, "createdAt": 1000}
        header |= {"cwd": cwd, "isSeeded": False, "delegationDepth": 0}
        message = {"content": [{"type": "text", "text": text}], "source": {"kind": "user"}}
        message |= {"role": "user", "id": "m1"}
        rows: list[dict[str, Any]] = [
            {"type": "turn/start", "data": {"turn": 1}},
            {"type": "step/start", "data": {"turn": 1, "step": 1}},
            {"type": "user/message", "data": message, "surfaceOp": "append"},
            {"type": "step/end", "data": {"turn": 1, "step": 1}},
            {"type": "turn/end", "data": {"turn": 1, "reason": {"kind": "completed"}}},
        ]
        lines = [header] + [{**row, "seq": seq, "time": 1000 + seq} for seq, row in enumerate(rows)]
        project = "--" + cwd.strip("/").replace("/", "-") + "--"
        folder = home / "sessions" / project / session_id
        folder.mkdir(parents=True)
        log = folder / "session.v4.jsonl"
        log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        return log

    return write


class SilentServer:
    """Accepts a scoring request and never answers it."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.release = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.called.set()
                outer.release.wait(60)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def silent_server() -> Iterator[SilentServer]:
    server = SilentServer()
    yield server
    server.close()

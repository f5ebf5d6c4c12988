"""Servers in memory and as processes, on private copies of the sample home; a scripted model."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.interfaces.mcp.server import MemoryServer
from dsh_memory.interfaces.mcp.sets import tool_sets
from dsh_memory.runtime.config.layers import LoadedConfig, load

ROOT = Path(__file__).resolve().parents[3]
TIDEPOOL = "/home/mira/code/tidepool"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Place:
    """One user: a DSH home, a configuration file and a cache of its own."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "dsh-home"

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    def load(self) -> LoadedConfig:
        overrides = [
            f"store.home={self.home}",
            f"index.path={self.folder / 'index.sqlite3'}",
        ]
        return load(
            config_path=self.config,
            overrides=overrides,
            environ={},
            site_path=self.folder / "no-site.toml",
        )

    def server(
        self, *sets: str, cwd: str | None = None, session_id: str | None = None
    ) -> MemoryServer:
        return MemoryServer(
            self.load, tool_sets(sets or ("memory",), cwd=cwd, session_id=session_id)
        )

    def environment(self, **changes: str) -> dict[str, str]:
        kept = ("PATH", "LANG", "VIRTUAL_ENV", "PYTHONPATH", "COVERAGE_PROCESS_START")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        return {
            **environment,
            "HOME": str(self.folder),
            "DSH_HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "XDG_CONFIG_HOME": str(self.folder / "xdg-config"),
            "XDG_RUNTIME_DIR": str(self.folder),
            "PYTHONUTF8": "1",
            **changes,
        }

    def command(self, *words: str) -> list[str]:
        return [
            sys.executable,
            "-m",
            "dsh_memory.interfaces.cli",
            "mcp",
            "--config",
            str(self.config),
            *words,
        ]

    def start(self, command: Sequence[str], **changes: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(**changes),
            cwd=self.folder,
        )


@pytest.fixture(scope="session")
def new_place() -> Callable[[Path], Place]:
    def make(folder: Path) -> Place:
        place = Place(folder)
        folder.mkdir()
        shutil.copytree(ROOT / "examples" / "sample-home", place.home)
        return place

    return make


@pytest.fixture
def place(new_place: Callable[[Path], Place], tmp_path: Path) -> Place:
    return new_place(tmp_path / "user")


@dataclass
class LineClient:
    """A client that speaks lines to a server process, without the SDK between."""

    process: subprocess.Popen[bytes]

    def send(self, message: Any) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server closed its output"
        return json.loads(line)

    def request(self, number: int, method: str, **params: Any) -> Any:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                return answer

    def initialize(self) -> Any:
        answer = self.request(
            0,
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "test", "version": "1"},
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, number: int, name: str, **arguments: Any) -> Any:
        return self.request(number, "tools/call", name=name, arguments=arguments)["result"]


@pytest.fixture
def line_client(place: Place) -> Iterator[Callable[..., LineClient]]:
    started: list[Any] = []

    def connect(*words: str, command: Sequence[str] | None = None, **changes: str) -> LineClient:
        process = place.start(command or place.command(*words), **changes)
        started.append(process)
        return LineClient(process)

    yield connect
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()


@dataclass
class ModelServer:
    """A System One server on loopback, with what the tests want to know about its client."""

    server: ThreadingHTTPServer
    asked: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)

    def settings(self) -> str:
        url = f"http://127.0.0.1:{self.server.server_port}"
        return f'[jev]\nenabled = true\ncontext_window = 8192\nbase_url = "{url}"\n'


class QuietHandler(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["content-length"])))


@contextlib.contextmanager
def served(handler: type[QuietHandler]) -> Iterator[ModelServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield ModelServer(server)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def hanging_model() -> Iterator[ModelServer]:
    """Accepts a scoring request and does not answer it."""

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            self.body()
            model.asked.set()
            self.connection.settimeout(60)
            with contextlib.suppress(OSError):
                if self.connection.recv(1) == b"":  # the client closed the connection
                    model.left.set()

    with served(Handler) as model:
        yield model


@pytest.fixture
def scoring_model() -> Iterator[ModelServer]:
    """Finds everything relevant, a little slowly."""

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            asked = self.body()
            time.sleep(0.05)
            answers = {key: {"type": "noul", "noul": 0.9} for key in asked["questions"]}
            usage = {"input_tokens": 1, "output_tokens": 1}
            answer = {"model": asked["model"], "answers": answers, "usage": usage}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with served(Handler) as model:
        yield model


@pytest.fixture(scope="session")
def write_session() -> Callable[..., Path]:
    """Write a plain one-turn session; with `asking`, a second step in which it calls a tool."""

    def write(
        home: Path,
        session_id: str,
        text: str,
        *,
        cwd: str,
        asking: str | None = None,
        time: int = 1_790_000_000_000,
        **header: Any,
    ) -> Path:
        message = {"content": [{"type": "text", "text": text}], "source": {"kind": "user"}}
        message |= {"role": "user", "id": "m1"}
        rows: list[dict[str, Any]] = [
            {"type": "turn/start", "data": {"turn": 1}},
            {"type": "step/start", "data": {"turn": 1, "step": 1}},
            {"type": "user/message", "data": message, "surfaceOp": "append"},
            {"type": "step/end", "data": {"turn": 1, "step": 1}},
        ]
        if asking is not None:
            said: Any = {"role": "assistant", "id": "m2"}
            said["source"] = {"kind": "model", "provider": "p", "model": "m"}
            said["content"] = [{"type": "text", "text": asking}]
            rows += [
                {"type": "step/start", "data": {"turn": 1, "step": 2}},
                {
                    "type": "assistant/message",
                    "data": {"turn": 1, "step": 2, "message": said, "stream": []},
                    "surfaceOp": "append",
                },
                {"type": "step/end", "data": {"turn": 1, "step": 2}},
            ]
        rows.append({"type": "turn/end", "data": {"turn": 1, "reason": {"kind": "completed"}}})
        first = {"type": "session", "version": 4, "id": session_id, "createdAt": time}
        first |= {"cwd": cwd, "isSeeded": False, "delegationDepth": 0, **header}
        lines = [first] + [{**row, "seq": seq, "time": time + seq} for seq, row in enumerate(rows)]
        folder = home / "sessions" / ("--" + cwd.strip("/").replace("/", "-") + "--") / session_id
        folder.mkdir(parents=True)
        log = folder / "session.v4.jsonl"
        log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        return log

    return write

"""Servers for the classifier's tests: scripted ones in threads, real ones as child processes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from dsh_memory.runtime.endpoint import Endpoint


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def endpoint_at() -> Callable[..., Endpoint]:
    def make(url: str, model: str = "nimble", context_window: int = 8192) -> Endpoint:
        return Endpoint(url.rstrip("/"), model, context_window)

    return make


@dataclass
class Exchange:
    """One request as it arrived."""

    head: str
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.split("\r\n")[1:]
        return dict(line.split(": ", 1) for line in lines if line)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class RawServer:
    """A listening socket that answers with scripted bytes and notes everything it sees."""

    port: int
    host: str = "127.0.0.1"
    connections: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    closed_by_client: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


Responder = Callable[[Exchange, socket.socket], bytes | None]


def _read_request(connection: socket.socket) -> Exchange | None:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return None
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.decode("latin-1").split("\r\n"):
        if line.lower().startswith("content-length:"):
            length = int(line.partition(":")[2])
    while len(body) < length:
        chunk = connection.recv(65536)
        if not chunk:
            return None
        body += chunk
    return Exchange(head.decode("latin-1"), body)


@contextmanager
def _raw_server(responder: Responder, host: str) -> Iterator[RawServer]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind((host, 0))
    listener.listen(16)
    listener.settimeout(0.05)
    server = RawServer(listener.getsockname()[1], host)
    stopping = threading.Event()

    def handle(connection: socket.socket) -> None:
        with connection:
            connection.settimeout(20)
            try:
                exchange = _read_request(connection)
                if exchange is None:
                    return
                server.exchanges.append(exchange)
                answer = responder(exchange, connection)
                if answer is not None:
                    connection.sendall(answer)
                    return
                while not stopping.is_set():
                    connection.settimeout(0.05)
                    try:
                        if not connection.recv(1):
                            server.closed_by_client.set()
                            return
                    except TimeoutError:
                        continue
            except OSError:
                server.closed_by_client.set()

    def accept() -> None:
        threads: list[threading.Thread] = []
        while not stopping.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            server.connections += 1
            threads.append(threading.Thread(target=handle, args=(connection,)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield server
    finally:
        stopping.set()
        acceptor.join()
        listener.close()


@pytest.fixture
def raw_server() -> Iterator[Callable[..., RawServer]]:
    """Start servers that answer with the responder's bytes; None keeps the connection silent."""
    stack: list[Any] = []

    def start(responder: Responder, host: str = "127.0.0.1") -> RawServer:
        context = _raw_server(responder, host)
        server = context.__enter__()
        stack.append(context)
        return server

    yield start
    for context in reversed(stack):
        context.__exit__(None, None, None)


@pytest.fixture
def http_answer() -> Callable[..., bytes]:
    def make(document: Any, status: str = "200 OK") -> bytes:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    return make


@pytest.fixture
def scored() -> Callable[..., dict[str, Any]]:
    """Make the valid answer to a request, with one noul for all items or one for each."""

    def make(request: dict[str, Any], nouls: float | list[float] = 0.7) -> dict[str, Any]:
        names = list(request["questions"])
        values = nouls if isinstance(nouls, list) else [nouls] * len(names)
        return {
            "model": request["model"],
            "answers": {
                name: {"type": "noul", "noul": value}
                for name, value in zip(names, values, strict=True)
            },
            "usage": {"input_tokens": 10 * len(names), "output_tokens": len(names)},
        }

    return make


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code != 503
    except OSError:
        return False


@contextmanager
def _child_server(command: list[str], port: int, seconds: float) -> Iterator[str]:
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + seconds
        while not _answers(f"{url}/health"):
            assert process.poll() is None, f"{command} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{command} is not ready after {seconds} seconds"
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def child_server() -> Callable[..., Any]:
    """Run ``python ARGUMENTS PORT`` as a server: a context manager that yields its URL."""

    def start(*arguments: str, seconds: float = 60) -> Any:
        port = _free_port()
        command = [sys.executable, *(item.replace("{port}", str(port)) for item in arguments)]
        return _child_server(command, port, seconds)

    return start

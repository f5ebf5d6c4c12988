"""The model service that a server started ends with it, however the server ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

QUESTION = {"query": "database", "question": "Which database did we choose?"}
FAKE = Path(__file__).parents[2] / "fake_ollama" / "ollama"


@dataclass
class Service:
    """A directory with an `ollama` executable of the tests, found by the server on its PATH."""

    directory: Path
    port: int

    def order(self, **faults: Any) -> None:
        (self.directory / "faults.json").write_text(json.dumps(faults), "utf-8")

    def settings(self) -> str:
        url = f"http://127.0.0.1:{self.port}"
        return f'[jev]\nenabled = true\nmanage_ollama = true\nbase_url = "{url}"\n'

    def requests(self) -> list[str]:
        log = self.directory / "log.jsonl"
        lines = log.read_text("utf-8").splitlines() if log.exists() else []
        return [entry["path"] for entry in map(json.loads, lines) if entry["event"] == "request"]

    def processes(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if entry.name.isdigit() and state != "Z" and bytes(self.directory) in words:
                    found.append(int(entry.name))
        return found

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, (self.requests(), self.processes())
            time.sleep(0.05)


@pytest.fixture
def service(place: Any) -> Iterator[Service]:
    if not Path("/proc/self/stat").exists():
        pytest.skip("the processes of a test are watched through /proc")
    directory = place.folder / "bin"
    directory.mkdir()
    (directory / "ollama").symlink_to(FAKE)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        service = Service(directory, reserved.getsockname()[1])
    place.config.write_text(service.settings(), "utf-8")
    yield service
    for process in service.processes():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.fixture
def client(service: Service, line_client: Callable[..., Any]) -> Any:
    client = line_client(PATH=f"{service.directory}{os.pathsep}{os.environ['PATH']}")
    client.initialize()
    return client


@pytest.mark.parametrize("way", ["stdin", "terminate", "kill"])
def test_it_serves_several_calls_and_ends_with_the_server(
    service: Service, client: Any, way: str
) -> None:
    for number in (1, 2):
        result = client.call(number, "recall_memory", **QUESTION)
        assert not result["isError"], result["content"][0]["text"]
        assert result["structuredContent"]["jev"]["reviewed"] > 0
    assert service.requests().count("/api/show") == 1
    assert service.processes()
    if way == "stdin":
        client.process.stdin.close()
    else:
        client.process.send_signal(signal.SIGTERM if way == "terminate" else signal.SIGKILL)
    client.process.wait(30)
    service.wait_for(lambda: not service.processes())


def test_a_client_that_leaves_during_a_pull_leaves_no_service(
    service: Service, client: Any
) -> None:
    service.order(missing=True, pull="hangs")
    params = {"name": "recall_memory", "arguments": QUESTION}
    client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    service.wait_for(lambda: "/api/pull" in service.requests())
    client.process.stdin.close()
    assert client.process.wait(30) == 0
    service.wait_for(lambda: not service.processes())


def test_a_new_configuration_ends_the_service(service: Service, client: Any, place: Any) -> None:
    assert not client.call(1, "recall_memory", **QUESTION)["isError"]
    assert service.processes()
    place.config.write_text("", "utf-8")
    assert not client.call(2, "recall_memory", query="database")["isError"]
    service.wait_for(lambda: not service.processes())


def test_the_client_hears_of_start_and_pull(service: Service, client: Any) -> None:
    service.order(missing=True)
    params = {"name": "recall_memory", "arguments": QUESTION, "_meta": {"progressToken": "p"}}
    client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    told: list[dict[str, Any]] = []
    while (message := client.receive()).get("id") != 1:
        told.append(message["params"])
    assert not message["result"]["isError"], message["result"]["content"][0]["text"]
    assert told
    assert {entry["progressToken"] for entry in told} == {"p"}
    values = [entry["progress"] for entry in told]
    assert values == sorted(set(values))

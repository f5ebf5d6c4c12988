"""Shared fixtures of the runtime tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from dsh_memory.runtime.config.layers import LoadedConfig, load
from dsh_memory.runtime.config.settings import JevSettings
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.runtime.ollama.rendezvous import find


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """The path of a user file that does not exist yet."""
    return tmp_path / "config.toml"


@pytest.fixture
def load_text(config_file: Path, tmp_path: Path) -> Callable[..., LoadedConfig]:
    """Load a configuration from the text of a user file, of a site file, variables and options."""

    def run(
        user: str | None = None,
        *,
        site: str | None = None,
        environ: dict[str, str] | None = None,
        overrides: tuple[str, ...] = (),
    ) -> LoadedConfig:
        site_file = tmp_path / "site.toml"
        for path, text in ((config_file, user), (site_file, site)):
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_text(text, encoding="utf-8")
        return load(
            config_path=config_file,
            site_path=site_file,
            environ=environ or {},
            overrides=overrides,
        )

    return run


@dataclass(frozen=True)
class FakeOllama:
    """A directory with an `ollama` executable that behaves as ordered, and a port for it."""

    directory: Path
    port: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        return os.environ | {"PATH": f"{self.directory}{os.pathsep}{os.environ['PATH']}"}

    def order(self, **faults: Any) -> None:
        (self.directory / "faults.json").write_text(json.dumps(faults))

    def settings(self, **values: Any) -> JevSettings:
        return JevSettings.model_validate(
            {
                "enabled": True,
                "manage_ollama": True,
                "base_url": self.base_url,
                "load_timeout": 20.0,
            }
            | values
        )

    def log(self) -> list[dict[str, Any]]:
        path = self.directory / "log.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def starts(self) -> int:
        return sum(entry["event"] == "serve" for entry in self.log())

    def requests(self) -> list[str]:
        return [entry["path"] for entry in self.log() if entry["event"] == "request"]

    def processes(self) -> dict[int, str]:
        """All living processes of ours: guardian, keeper, service and runner name the directory."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except (OSError, UnicodeDecodeError):
                continue
            if state != "Z" and any(str(self.directory) in word for word in words):
                if "guardian.py" in " ".join(words):
                    found[int(entry.name)] = "guardian"
                elif "keeper.py" in " ".join(words):
                    found[int(entry.name)] = "keeper"
                elif "serve" in words:
                    found[int(entry.name)] = "service"
                elif "tail" in words:
                    found[int(entry.name)] = "runner"
        return found

    def wait_gone(self, seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while self.processes() or self.is_listening():
            assert time.monotonic() < deadline, (self.processes(), self.is_listening())
            time.sleep(0.05)
        place = find("127.0.0.1", self.port)
        assert place is None or not place.socket.exists()

    def wait_for_request(self, path: str) -> None:
        deadline = time.monotonic() + 30
        while path not in self.requests():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def fake_ollama(tmp_path: Path) -> Iterator[FakeOllama]:
    """A fake `ollama` without faults; nothing of it may be left at the end."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("the processes of a test are watched through /proc")
    directory = tmp_path / "bin"
    directory.mkdir()
    source = Path(__file__).parents[1] / "fake_ollama" / "ollama"
    (directory / "ollama").symlink_to(source)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    fake = FakeOllama(directory, port)
    try:
        yield fake
        fake.wait_gone()
    finally:
        for pid in fake.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for address in ("127.0.0.1", "::1"):
            place = find(address, port)
            if place is not None:
                for lock in (place.start_lock, place.life_lock):
                    lock.unlink(missing_ok=True)


async def _score_once(endpoint: Endpoint) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        response = await client.post(
            f"{endpoint.base_url}/v1/systemone",
            json={
                "model": endpoint.model,
                "state": "s",
                "questions": {"item_0": {"type": "noul", "instructions": "x"}},
            },
        )
    assert response.status_code == 200


@pytest.fixture
def warm_up() -> Callable[[Endpoint], Awaitable[None]]:
    """One minimal scoring request, as the classifier sends it."""
    return _score_once


class Recorder:
    """A progress receiver that remembers."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.pulls: list[tuple[str, int | None, int | None]] = []

    def batches(self, done: int, total: int) -> None:
        raise AssertionError("the service sends no batches")

    def pull(self, status: str, completed: int | None, total: int | None) -> None:
        self.pulls.append((status, completed, total))

    def service(self, text: str) -> None:
        self.stages.append(text)


@pytest.fixture
def recorder() -> Recorder:
    """A progress receiver that remembers."""
    return Recorder()

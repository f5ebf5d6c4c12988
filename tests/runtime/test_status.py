"""Facts for a status report, without any effect."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import pytest
from dsh_memory.runtime.config.settings import JevSettings
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.runtime.ollama.errors import OllamaError
from dsh_memory.runtime.ollama.service import ModelService
from dsh_memory.runtime.status import model_status

WarmUp = Callable[[Endpoint], Awaitable[None]]


def _status(jev: JevSettings, **options: Any) -> dict[str, Any]:
    facts = anyio.run(lambda: model_status(jev, **options))
    assert json.loads(json.dumps(facts)) == facts
    return facts


@pytest.fixture
def standing(fake_ollama: Any) -> Iterator[Callable[[], None]]:
    """Start a standing service; it is ended at the end."""
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        environment = fake_ollama.environ | {"OLLAMA_HOST": f"127.0.0.1:{fake_ollama.port}"}
        running.append(
            subprocess.Popen([fake_ollama.directory / "ollama", "serve"], env=environment)
        )
        while not fake_ollama.is_listening():
            assert running[0].poll() is None

    yield start
    for process in running:
        process.terminate()
        process.wait()


def test_without_a_check_nothing_is_connected_to(fake_ollama: Any) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", fake_ollama.port))
        listener.listen()
        listener.setblocking(False)
        facts = _status(fake_ollama.settings(context_window=4096))
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert facts == {
        "enabled": True,
        "model": "nimble",
        "base_url": fake_ollama.base_url,
        "manage_ollama": True,
        "context_window": 4096,
        "managed_service": {"running": False},
    }
    assert fake_ollama.log() == []


def test_a_running_service_and_its_users_are_seen(fake_ollama: Any, warm_up: WarmUp) -> None:
    async def main() -> None:
        settings = fake_ollama.settings()
        async with ModelService(settings, warm_up=warm_up, environ=fake_ollama.environ) as service:
            await service.endpoint()
            facts = await model_status(settings, service_state=service.state())
            managed = facts["managed_service"]
            assert managed["running"] is True
            assert managed["leases"] == 1
            processes = fake_ollama.processes()
            assert processes[managed["guardian"]] == "guardian"
            assert processes[managed["service"]] == "service"
            assert facts["state"] == "ready"
            assert facts["effective_context_window"] == 8192
            assert "last_failure" not in facts
        assert (await model_status(settings))["managed_service"] == {"running": False}

    anyio.run(main)


def test_the_last_failure_of_the_answering_process_is_told(
    fake_ollama: Any, warm_up: WarmUp
) -> None:
    fake_ollama.order(version="0.1.0")

    async def main() -> dict[str, Any]:
        settings = fake_ollama.settings()
        async with ModelService(settings, warm_up=warm_up, environ=fake_ollama.environ) as service:
            with pytest.raises(OllamaError):
                await service.endpoint()
            return await model_status(settings, service_state=service.state())

    facts = anyio.run(main)
    assert facts["state"] == "failed"
    assert facts["last_failure"]["code"] == "OLLAMA_VERSION_TOO_OLD"
    assert facts["last_failure"]["at"].endswith("Z")


def test_a_check_asks_version_and_model_and_changes_nothing(
    fake_ollama: Any, standing: Callable[[], None]
) -> None:
    standing()
    facts = _status(fake_ollama.settings(context_window=2048), check=True)
    assert facts["check"] == {
        "reachable": True,
        "version": "0.40.12",
        "model_present": True,
        "declared_context_window": 8192,
        "effective_context_window": 2048,
    }
    assert fake_ollama.requests() == ["/api/version", "/api/show"]


@pytest.mark.parametrize(
    ("faults", "expected", "word"),
    [
        ({"missing": True}, {"reachable": True, "model_present": False}, None),
        ({"version": "0.0.0"}, {"reachable": True, "version": "0.0.0"}, "self-built"),
        ({"hang_on": "/api/version"}, {"reachable": True}, "no answer within 2 s"),
        ({"hang_on": "/api/show"}, {"reachable": True}, "no answer in time"),
        ({"parameters": None}, {"declared_context_window": None}, "num_ctx"),
    ],
)
def test_a_check_states_problems_as_facts(
    fake_ollama: Any,
    standing: Callable[[], None],
    faults: dict[str, Any],
    expected: dict[str, Any],
    word: str | None,
) -> None:
    fake_ollama.order(**faults)
    standing()
    facts = _status(fake_ollama.settings(), check=True)["check"]
    assert {key: facts[key] for key in expected} == expected
    assert (word is None) == ("problem" not in facts)
    assert word is None or word in facts["problem"]
    assert "/api/pull" not in fake_ollama.requests()


def test_a_check_of_nothing_starts_nothing(fake_ollama: Any) -> None:
    facts = _status(fake_ollama.settings(), check=True)["check"]
    assert facts["reachable"] is False
    assert fake_ollama.base_url in facts["problem"]
    assert fake_ollama.starts() == 0

"""Every way a user or a guardian can end, sharing, and what a failed start means."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio.lowlevel
import anyio.to_thread
import pytest
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.runtime.ollama import lease
from dsh_memory.runtime.ollama.errors import OllamaError
from dsh_memory.runtime.ollama.rendezvous import find
from dsh_memory.runtime.ollama.service import ModelService

WarmUp = Callable[[Endpoint], Awaitable[None]]
StartUser = Callable[..., "subprocess.Popen[str]"]
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="parent-death signal and subreaper are Linux features"
)


@pytest.fixture
def start_user(fake_ollama: Any) -> Iterator[StartUser]:
    """Start a process that uses the service; `until` waits for a line of its output."""
    users: list[subprocess.Popen[str]] = []

    def run(then: str = "wait", until: str | None = "ready", **settings: Any) -> Any:
        order = {"settings": fake_ollama.settings(**settings).model_dump(), "then": then}
        user = subprocess.Popen(
            [sys.executable, str(Path(__file__).parents[1] / "service_user.py"), json.dumps(order)],
            env=fake_ollama.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        users.append(user)
        if until is not None:
            assert user.stdout is not None
            for line in user.stdout:
                if line.startswith(until):
                    break
            else:
                raise AssertionError(f"the user ended before it said {until!r}")
        return user

    yield run
    for user in users:
        if user.poll() is None:
            user.kill()
        user.wait()
        assert user.stdout is not None
        user.stdout.close()


def _guardian(fake: Any) -> int:
    place = find("127.0.0.1", fake.port)
    assert place is not None
    facts = lease.status(place)
    assert facts is not None
    return int(facts["guardian"])


def _process(fake: Any, name: str) -> int:
    return next(int(pid) for pid, found in fake.processes().items() if found == name)


@pytest.mark.parametrize(
    ("way", "stubborn"),
    [
        ("exit", False),
        ("raise", False),
        (signal.SIGINT, False),
        (signal.SIGTERM, False),
        (signal.SIGHUP, False),
        (signal.SIGKILL, False),
        (signal.SIGINT, True),
        (signal.SIGKILL, True),
    ],
)
def test_however_a_user_ends_the_service_is_gone(
    fake_ollama: Any, start_user: StartUser, way: str | signal.Signals, stubborn: bool
) -> None:
    fake_ollama.order(ignore_term=stubborn, runner_ignores_term=stubborn)
    if isinstance(way, str):
        user = start_user(then=way)
    else:
        user = start_user()
        assert set(fake_ollama.processes().values()) == {"guardian", "keeper", "service", "runner"}
        os.killpg(user.pid, way)
    fake_ollama.wait_gone()
    user.wait(timeout=30)
    assert fake_ollama.starts() == 1


@pytest.mark.parametrize(
    ("victim", "session"),
    [
        pytest.param("guardian", False, id="guardian"),
        pytest.param("guardian", True, id="guardian, runner in its own session"),
        pytest.param("guardian-group", True, id="guardian's group"),
        pytest.param("keeper", True, id="keeper, runner in its own session"),
        pytest.param("service", False, id="service"),
    ],
)
def test_a_killed_part_takes_everything_with_it(
    fake_ollama: Any, start_user: StartUser, victim: str, session: bool
) -> None:
    fake_ollama.order(ignore_term=True, runner_ignores_term=True, runner_session=session)
    user = start_user()
    guardian = _guardian(fake_ollama)
    if victim == "guardian":
        os.kill(guardian, signal.SIGKILL)
    elif victim == "guardian-group":
        os.killpg(guardian, signal.SIGKILL)
    else:
        os.kill(_process(fake_ollama, victim), signal.SIGKILL)
    fake_ollama.wait_gone()
    assert user.poll() is None


def _kill_both(fake: Any) -> None:
    """Kill guardian and keeper so that neither can end the other's work."""
    pids = [_process(fake, name) for name in ("guardian", "keeper")]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_what_a_killed_guardian_and_keeper_leave_is_ended_by_the_user(
    fake_ollama: Any, start_user: StartUser
) -> None:
    fake_ollama.order(runner_ignores_term=True, runner_session=True)
    user = start_user()
    _kill_both(fake_ollama)
    user.send_signal(signal.SIGINT)
    user.wait(timeout=30)
    assert fake_ollama.processes() == {}


def test_what_all_killed_processes_leave_is_ended_by_the_next_user(
    fake_ollama: Any, start_user: StartUser
) -> None:
    fake_ollama.order(runner_ignores_term=True, runner_session=True)
    user = start_user()
    runner = _process(fake_ollama, "runner")
    _kill_both(fake_ollama)
    user.kill()
    user.wait(timeout=30)
    assert runner in fake_ollama.processes()
    start_user(then="exit").wait(timeout=30)
    fake_ollama.wait_gone()


STAGES = [
    pytest.param({}, "Looking", signal.SIGINT, id="probe"),
    pytest.param({"hang_on": "/api/version"}, "Starting", signal.SIGINT, id="serve"),
    pytest.param({"never_listens": True}, "Starting", signal.SIGKILL, id="serve, killed"),
    pytest.param({"missing": True, "pull": "hangs"}, "pull 60", signal.SIGINT, id="pull"),
    pytest.param({"missing": True, "pull": "hangs"}, "pull 60", signal.SIGKILL, id="pull, killed"),
    pytest.param({"hang_on": "/api/show"}, "Checking", signal.SIGINT, id="show"),
    pytest.param({"load_seconds": 60}, "Loading", signal.SIGTERM, id="load"),
]


@pytest.mark.parametrize(("faults", "stage", "way"), STAGES)
def test_an_interrupted_start_leaves_nothing(
    fake_ollama: Any,
    start_user: StartUser,
    faults: dict[str, Any],
    stage: str,
    way: signal.Signals,
) -> None:
    fake_ollama.order(**faults)
    user = start_user(until=stage)
    os.killpg(user.pid, way)
    user.wait(timeout=30)
    fake_ollama.wait_gone()


def test_two_users_share_one_service_until_the_later_one_ends(
    fake_ollama: Any, start_user: StartUser
) -> None:
    users = [start_user(until=None), start_user(until=None)]
    for user in users:
        assert "ready\n" in iter(user.stdout.readline, "")
    assert fake_ollama.starts() == 1
    place = find("127.0.0.1", fake_ollama.port)
    assert place is not None
    facts = lease.status(place)
    assert facts is not None
    assert facts["leases"] == 2
    first, second = users
    first.send_signal(signal.SIGINT)
    first.wait(timeout=30)
    assert fake_ollama.is_listening()
    assert second.poll() is None
    facts = lease.status(place)
    assert facts is not None
    assert facts["leases"] == 1
    second.kill()
    fake_ollama.wait_gone()
    assert fake_ollama.starts() == 1


def test_a_user_that_comes_while_the_service_ends_gets_a_new_one(
    fake_ollama: Any, start_user: StartUser
) -> None:
    fake_ollama.order(ignore_term=True)
    place = find("127.0.0.1", fake_ollama.port)
    assert place is not None
    start_user().kill()
    while (facts := lease.status(place)) is not None and facts["leases"]:
        time.sleep(0.02)  # until the guardian has noticed; the test's time limit bounds it
    second = start_user(then="wait")
    assert fake_ollama.starts() == 2
    assert sum(name == "service" for name in fake_ollama.processes().values()) == 1
    second.kill()
    fake_ollama.wait_gone()


def test_a_service_of_its_own_accord_is_told_at_the_next_call(
    fake_ollama: Any, warm_up: WarmUp
) -> None:
    async def main() -> None:
        async with ModelService(
            fake_ollama.settings(), warm_up=warm_up, environ=fake_ollama.environ
        ) as service:
            await service.endpoint()
            os.kill(_process(fake_ollama, "service"), signal.SIGKILL)
            await anyio.to_thread.run_sync(fake_ollama.wait_gone)
            for _ in range(2):
                with pytest.raises(OllamaError, match="SIGKILL") as caught:
                    await service.endpoint()
                assert caught.value.code == "OLLAMA_SERVICE_ENDED"
            assert service.state()["last_failure"]["code"] == "OLLAMA_SERVICE_ENDED"

    anyio.run(main)
    assert fake_ollama.starts() == 1


def test_the_start_is_lazy_and_shared(fake_ollama: Any, warm_up: WarmUp) -> None:
    async def main() -> None:
        async with ModelService(
            fake_ollama.settings(), warm_up=warm_up, environ=fake_ollama.environ
        ) as service:
            assert service.state() == {"state": "idle"}
            assert fake_ollama.processes() == {}
            found: list[Endpoint] = []

            async def ask() -> None:
                found.append(await service.endpoint())

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(ask)
            assert len(set(found)) == 1
            assert service.state()["state"] == "ready"
            assert fake_ollama.requests().count("/v1/systemone") == 1

    anyio.run(main)
    assert fake_ollama.starts() == 1


def test_a_failed_start_stays_failed_without_a_second_try(
    fake_ollama: Any, warm_up: WarmUp
) -> None:
    fake_ollama.order(version="0.1.0")

    async def main() -> None:
        async with ModelService(
            fake_ollama.settings(), warm_up=warm_up, environ=fake_ollama.environ
        ) as service:
            for _ in range(2):
                with pytest.raises(OllamaError) as caught:
                    await service.endpoint()
                assert caught.value.code == "OLLAMA_VERSION_TOO_OLD"
                fake_ollama.order()  # it would work now
            assert service.state()["state"] == "failed"
            assert service.state()["last_failure"]["code"] == "OLLAMA_VERSION_TOO_OLD"

    anyio.run(main)
    assert fake_ollama.starts() == 1


def test_a_cancelled_start_stays_failed_for_those_who_waited(
    fake_ollama: Any, warm_up: WarmUp
) -> None:
    fake_ollama.order(hang_on="/api/show")

    async def main() -> None:
        async with ModelService(
            fake_ollama.settings(), warm_up=warm_up, environ=fake_ollama.environ
        ) as service:
            codes: list[str] = []

            async def wait_too() -> None:
                try:
                    await service.endpoint()
                except DshMemoryError as error:
                    codes.append(error.code)

            scope = anyio.CancelScope()

            async def start() -> None:
                with scope:
                    await service.endpoint()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(start)
                await anyio.lowlevel.checkpoint()
                tasks.start_soon(wait_too)
                await anyio.to_thread.run_sync(fake_ollama.wait_for_request, "/api/show")
                scope.cancel()
            assert codes == ["OLLAMA_START_CANCELLED"]
            fake_ollama.wait_gone()

    anyio.run(main)


def test_a_closed_service_gives_no_endpoint(fake_ollama: Any, warm_up: WarmUp) -> None:
    async def main() -> None:
        service = ModelService(fake_ollama.settings(), warm_up=warm_up)
        await service.aclose()
        await service.aclose()
        with pytest.raises(OllamaError, match="closed"):
            await service.endpoint()

    anyio.run(main)


def test_unmanaged_nothing_is_probed(fake_ollama: Any, warm_up: WarmUp) -> None:
    async def main() -> Endpoint:
        settings = fake_ollama.settings(manage_ollama=False, context_window=2048)
        async with ModelService(settings, warm_up=warm_up, environ=fake_ollama.environ) as service:
            return await service.endpoint()

    assert anyio.run(main) == Endpoint(fake_ollama.base_url, "nimble", 2048)
    assert fake_ollama.log() == []


def test_a_guardian_that_was_stopped_from_outside_ends_its_service(
    fake_ollama: Any, start_user: StartUser
) -> None:
    start_user()
    os.kill(_guardian(fake_ollama), signal.SIGTERM)
    fake_ollama.wait_gone()


def test_a_stale_socket_and_a_silent_visitor_disturb_nothing(
    fake_ollama: Any, start_user: StartUser
) -> None:
    import socket

    user = start_user()
    place = find("127.0.0.1", fake_ollama.port)
    assert place is not None
    with socket.socket(socket.AF_UNIX) as visitor:
        visitor.connect(str(place.socket))
        user.kill()
        fake_ollama.wait_gone()
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(place.socket))
    assert lease.status(place) is None
    start_user(then="exit")
    fake_ollama.wait_gone()


def test_the_meeting_place_is_private(fake_ollama: Any, start_user: StartUser) -> None:
    start_user()
    place = find("127.0.0.1", fake_ollama.port)
    assert place is not None
    assert place.directory.stat().st_mode & 0o777 == 0o700
    assert place.socket.stat().st_mode & 0o777 == 0o600
    began = time.monotonic()
    assert lease.status(place) is not None
    assert time.monotonic() - began < 5

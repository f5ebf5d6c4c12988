"""The memory that follows the configuration: one at a time, replaced when settings change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from dsh_memory.pipeline.hot_reload import LiveMemory, live_memory
from dsh_memory.runtime.config.layers import LoadedConfig, load
from dsh_memory.runtime.errors import ConfigError

pytestmark = pytest.mark.anyio


@dataclass
class Opened:
    """What `open_memory` was asked for, and a log of what happened in which order."""

    folder: Path
    log: list[str] = field(default_factory=list)
    closed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def file(self) -> Path:
        return self.folder / "config.toml"

    def load(self) -> LoadedConfig:
        return load(
            config_path=self.file, environ={}, site_path=self.folder / "site.toml", overrides=()
        )

    def write(self, limit: object) -> None:
        self.file.write_text(f"[index]\ndefault_limit = {limit}\n", "utf-8")

    @asynccontextmanager
    async def open(self, loaded: LoadedConfig, *, progress: Any = None) -> AsyncIterator[Any]:
        limit = loaded.settings.index.default_limit
        self.log.append(f"open {limit}")
        try:
            yield limit
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.02)
            self.log.append(f"close {limit}")
            self.closed.set()

    @asynccontextmanager
    async def live(self) -> AsyncIterator[LiveMemory]:
        async with live_memory(self.load, open_memory=self.open, interval=0.01) as live:
            yield live


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    return Opened(tmp_path)


async def same(memory: Any) -> Any:
    return memory


def hangs(opened: Opened, started: anyio.Event) -> Callable[[Any], Any]:
    async def work(memory: Any) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.02)
            opened.log.append(f"cleaned {memory}")

    return work


async def test_nothing_is_opened_before_the_first_run(opened: Opened) -> None:
    async with opened.live() as live:
        assert live.settings is None
    assert opened.log == []


async def test_runs_share_one_memory_while_settings_stay(opened: Opened) -> None:
    async with opened.live() as live:
        assert await live.run(same) == 20
        opened.file.write_text("# a comment changes the file, not the settings\n", "utf-8")
        assert await live.run(same) == 20
    assert opened.log == ["open 20", "close 20"]


async def test_a_change_between_runs_replaces_the_memory(opened: Opened) -> None:
    async with opened.live() as live:
        await live.run(same)
        opened.write(7)
        assert await live.run(same) == 7
    assert opened.log == ["open 20", "close 20", "open 7", "close 7"]


async def test_a_change_cancels_the_running_work_and_waits_for_its_cleanup(
    opened: Opened,
) -> None:
    started = anyio.Event()
    async with opened.live() as live, anyio.create_task_group() as tasks:

        async def first() -> None:
            with pytest.raises(ConfigError) as caught:
                await live.run(hangs(opened, started))
            opened.log.append(f"{caught.value.code} {caught.value.retryable}")

        tasks.start_soon(first)
        await started.wait()
        opened.write(7)  # noticed by the watcher: no other run comes meanwhile
        with anyio.fail_after(5):
            await opened.closed.wait()
        assert await live.run(same) == 7
    assert opened.log.index("cleaned 20") < opened.log.index("close 20")
    assert opened.log.index("close 20") < opened.log.index("open 7")
    assert "CONFIG_CHANGED True" in opened.log


async def test_a_new_run_notices_the_change_first(opened: Opened) -> None:
    started = anyio.Event()
    async with (
        live_memory(opened.load, open_memory=opened.open, interval=3600) as live,
        anyio.create_task_group() as tasks,
    ):

        async def first() -> None:
            with pytest.raises(ConfigError, match="changed while"):
                await live.run(hangs(opened, started))

        tasks.start_soon(first)
        await started.wait()
        opened.write(7)
        assert await live.run(same) == 7
    assert opened.log == ["open 20", "cleaned 20", "close 20", "open 7", "close 7"]


async def test_an_invalid_file_fails_new_runs_and_leaves_the_running_one_alone(
    opened: Opened,
) -> None:
    started, release, done = anyio.Event(), anyio.Event(), anyio.Event()
    results: list[Any] = []
    async with opened.live() as live, anyio.create_task_group() as tasks:

        async def waits(memory: Any) -> Any:
            started.set()
            await release.wait()
            return memory

        async def first() -> None:
            results.append(await live.run(waits))
            done.set()

        tasks.start_soon(first)
        await started.wait()
        opened.write('"many"')
        for _ in range(2):
            with pytest.raises(ConfigError) as caught:
                await live.run(same)
            assert caught.value.code == "CONFIG_INVALID"
            await anyio.sleep(0.05)  # several looks of the watcher
        release.set()
        with anyio.fail_after(5):
            await done.wait()
        opened.write(20)
        assert await live.run(same) == 20
    assert results == [20]
    assert opened.log == ["open 20", "close 20"]


async def test_a_failed_start_fails_the_run_and_the_next_one_tries_again(opened: Opened) -> None:
    failures = iter([OSError("no disk")])

    @asynccontextmanager
    async def fails_once(loaded: LoadedConfig, *, progress: Any = None) -> AsyncIterator[Any]:
        for failure in failures:
            raise failure
        yield "memory"

    async with live_memory(opened.load, open_memory=fails_once) as live:
        with pytest.raises(OSError, match="no disk"):
            await live.run(same)
        assert await live.run(same) == "memory"


async def test_cancelling_one_run_leaves_the_others_alone(opened: Opened) -> None:
    started = anyio.Event()
    async with opened.live() as live, anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:

            async def stop() -> None:
                await started.wait()
                assert await live.run(same) == 20
                scope.cancel()

            tasks.start_soon(stop)
            await live.run(hangs(opened, started))
        assert scope.cancelled_caught
        assert await live.run(same) == 20
    assert opened.log == ["open 20", "cleaned 20", "close 20"]


async def test_leaving_cancels_what_is_running(opened: Opened) -> None:
    started = anyio.Event()
    async with anyio.create_task_group() as tasks, opened.live() as live:

        async def run() -> None:
            with pytest.raises(ConfigError):
                await live.run(hangs(opened, started))

        tasks.start_soon(run)
        await started.wait()
    assert opened.log == ["open 20", "cleaned 20", "close 20"]

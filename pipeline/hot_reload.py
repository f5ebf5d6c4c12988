"""Live configuration for processes that stay: one memory at a time, replaced when settings change.

The user's and the site's file are looked at before each run and once a second while runs are on
their way. A changed file that is valid cancels the running work, waits for its cleanup and lets
new runs start with the new settings (document 003). An invalid file fails new runs and leaves the
running ones alone. Nothing is opened before the first run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus
from dsh_memory.runtime.config.layers import LoadedConfig, read_bytes, revision_of
from dsh_memory.runtime.errors import ConfigError

if TYPE_CHECKING:
    from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
    from dsh_memory.runtime.config.settings import Settings
    from dsh_memory.runtime.progress import Progress

T = TypeVar("T")
CHANGED: Final = "CONFIG_CHANGED"
WATCH_SECONDS: Final = 1.0


class OpenMemory(Protocol):
    """`pipeline.assembly.open_memory`, or something of its kind."""

    def __call__(
        self, loaded: LoadedConfig, *, progress: Progress | None = None
    ) -> AbstractAsyncContextManager[MemoryWorkflow]: ...


class LiveMemory:
    """Runs work on a memory that follows the configuration. Use it inside `live_memory`.

    Args:
        load: Reads and validates all layers of the configuration.
        tasks: Where the memory's owner and the watcher live.
        open_memory: Opens a memory for accepted settings.
        progress: What every memory reports to.
        interval: Seconds between two looks at the files while work is running.
    """

    def __init__(
        self,
        load: Callable[[], LoadedConfig],
        tasks: TaskGroup,
        open_memory: OpenMemory,
        *,
        progress: Progress | None = None,
        interval: float = WATCH_SECONDS,
    ) -> None:
        self._load = load
        self._tasks = tasks
        self._open = open_memory
        self._progress = progress
        self._interval = interval
        self._gate = anyio.Lock()
        self._loaded: LoadedConfig | None = None
        self._owner: _Owner | None = None
        self._watching = False

    @property
    def settings(self) -> Settings | None:
        """The settings that were accepted last; None before the first run."""
        return None if self._loaded is None else self._loaded.settings

    async def run(self, work: Callable[[MemoryWorkflow], Awaitable[T]]) -> T:
        """Run `work` on the memory of the current settings.

        Raises:
            ConfigError: The configuration is invalid (``CONFIG_*``), or it changed while `work`
                was running (``CONFIG_CHANGED``, retryable).
        """
        async with self._gate:
            owner = await self._current()
            # Entered before the gate opens, so that no change can slip in between.
            scope = owner.enter()
        try:
            with scope:
                self._watch()
                assert owner.memory is not None
                return await work(owner.memory)
        finally:
            owner.leave(scope)
        raise ConfigError(
            "The configuration changed while this call was running; nothing of it counts.",
            code=CHANGED,
            hint="Call again; the new settings apply.",
            retryable=True,
        )

    async def close(self) -> None:
        """Cancel the running work and close the memory."""
        async with self._gate:
            await self._retire()

    async def _current(self) -> _Owner:
        self._accept(self._load_if_changed())
        assert self._loaded is not None
        if self._owner is not None and self._owner.loaded.settings != self._loaded.settings:
            await self._retire()
        if self._owner is None:
            owner = _Owner(self._loaded)
            await self._tasks.start(self._hold, owner)
            self._owner = owner
        return self._owner

    def _load_if_changed(self) -> LoadedConfig | None:
        loaded = self._loaded
        if loaded is not None and (
            loaded.revision == revision_of(read_bytes(loaded.user_path))
            and loaded.site_revision == revision_of(read_bytes(loaded.site_path))
        ):
            return None
        return self._load()

    def _accept(self, loaded: LoadedConfig | None) -> None:
        if loaded is not None:
            self._loaded = loaded

    async def _retire(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            with anyio.CancelScope(shield=True):
                await owner.retire()

    async def _hold(self, owner: _Owner, *, task_status: TaskStatus[None]) -> None:
        try:
            async with self._open(owner.loaded, progress=self._progress) as memory:
                owner.memory = memory
                task_status.started()
                await owner.retired.wait()
        finally:
            owner.closed.set()

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self._tasks.start_soon(self._look)

    async def _look(self) -> None:
        try:
            while self._owner is not None and self._owner.busy:
                await anyio.sleep(self._interval)
                async with self._gate:
                    await self._follow()
        finally:
            self._watching = False

    async def _follow(self) -> None:
        try:
            self._accept(self._load_if_changed())
        except ConfigError:
            return  # new runs will say so; the running ones keep their valid settings
        owner = self._owner
        assert self._loaded is not None
        if owner is not None and owner.loaded.settings != self._loaded.settings:
            await self._retire()


class _Owner:
    """One memory and the runs on it."""

    def __init__(self, loaded: LoadedConfig) -> None:
        self.loaded = loaded
        self.memory: MemoryWorkflow | None = None
        self.retired = anyio.Event()
        self.closed = anyio.Event()
        self._runs: set[anyio.CancelScope] = set()
        self._idle: anyio.Event | None = None

    @property
    def busy(self) -> bool:
        return bool(self._runs)

    def enter(self) -> anyio.CancelScope:
        scope = anyio.CancelScope()
        self._runs.add(scope)
        return scope

    def leave(self, scope: anyio.CancelScope) -> None:
        self._runs.discard(scope)
        if not self._runs and self._idle is not None:
            self._idle.set()

    async def retire(self) -> None:
        """Cancel all runs, wait until they have cleaned up, then close the memory."""
        if self._runs:
            self._idle = anyio.Event()
            for scope in self._runs:
                scope.cancel()
            await self._idle.wait()
        self.retired.set()
        await self.closed.wait()


@asynccontextmanager
async def live_memory(
    load: Callable[[], LoadedConfig],
    *,
    open_memory: OpenMemory | None = None,
    progress: Progress | None = None,
    interval: float = WATCH_SECONDS,
) -> AsyncIterator[LiveMemory]:
    """Yield a `LiveMemory`; on the way out its work is cancelled and its memory closed."""
    async with anyio.create_task_group() as tasks:
        live = LiveMemory(
            load, tasks, open_memory or _open_memory, progress=progress, interval=interval
        )
        try:
            yield live
        finally:
            with anyio.CancelScope(shield=True):
                await live.close()
            tasks.cancel_scope.cancel()


def _open_memory(
    loaded: LoadedConfig, *, progress: Progress | None = None
) -> AbstractAsyncContextManager[MemoryWorkflow]:
    from dsh_memory.pipeline.assembly import open_memory

    return open_memory(loaded, progress=progress)

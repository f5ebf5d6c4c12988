"""Putting the stages together for one set of settings; every interface starts here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.pipeline.shared.dsh_home import dsh_home
from dsh_memory.sessionquery.model.options import EngineOptions

if TYPE_CHECKING:
    from dsh_memory.pipeline.shared.engine_port import EndpointSource
    from dsh_memory.runtime.config.layers import LoadedConfig
    from dsh_memory.runtime.config.settings import Settings
    from dsh_memory.runtime.progress import Progress
    from dsh_memory.sessionquery.engine import SessionQueryEngine


def engine_options(settings: Settings) -> EngineOptions:
    """Return the engine's part of the settings."""
    index = settings.index
    return EngineOptions(
        home=str(dsh_home(settings)),
        index_path=index.path,
        open_at=index.open_at,
        default_limit=index.default_limit,
        max_limit=index.max_limit,
        snippet_chars=index.snippet_chars,
        read_window_max=index.read_window_max,
        inspect_concurrency=index.inspect_concurrency,
        unreadable=settings.store.unreadable,
    )


@asynccontextmanager
async def open_engine(loaded: LoadedConfig) -> AsyncIterator[SessionQueryEngine]:
    """Open the engine alone, for looking at the store itself."""
    from dsh_memory.sessionquery.engine import SessionQueryEngine

    async with SessionQueryEngine(engine_options(loaded.settings)) as engine:
        yield engine


@asynccontextmanager
async def open_memory(
    loaded: LoadedConfig, *, progress: Progress | None = None
) -> AsyncIterator[MemoryWorkflow]:
    """Open the engine, and the model service if Jev is enabled; close both at the end.

    Opening starts no model service: that happens when the first hits have to be judged. Closing
    stops only what was started here, also when the body failed or was cancelled.

    Raises:
        DshMemoryError: The engine or the service could not be opened or closed.
    """
    from dsh_memory.sessionquery.engine import SessionQueryEngine

    settings = loaded.settings
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(SessionQueryEngine(engine_options(settings)))
        service = await _open_service(settings, stack, progress) if settings.jev.enabled else None
        yield MemoryWorkflow(engine, settings, service=service, progress=progress)


async def _open_service(
    settings: Settings, stack: AsyncExitStack, progress: Progress | None
) -> EndpointSource:
    from dsh_memory.classifier.filter import warm_up
    from dsh_memory.runtime.ollama.service import ModelService

    service = ModelService(
        settings.jev,
        warm_up=lambda endpoint: warm_up(endpoint, timeout=settings.jev.load_timeout),
        progress=progress,
    )
    stack.push_async_callback(service.aclose)
    return service

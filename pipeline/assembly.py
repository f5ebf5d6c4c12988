"""Putting the stages together for one set of settings; every interface starts here."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.workflow import MemoryWorkflow
from runtime.directories import user_home
from runtime.errors import ConfigError
from sessionquery.model import EngineOptions

if TYPE_CHECKING:
    from pipeline.ports import EndpointSource
    from runtime.config import LoadedConfig
    from runtime.progress import Progress
    from runtime.settings import Settings
    from sessionquery.engine import SessionQueryEngine


def dsh_home(settings: Settings, environ: Mapping[str, str] | None = None) -> Path:
    """Return the DSH home: ``store.home``, else ``$DSH_HOME``, else ``~/.dsh``; absolute.

    Raises:
        ConfigError: ``DSH_HOME`` names a place that cannot be found out, or is not set and the
            user's home directory is not known.
    """
    if settings.store.home is not None:
        return Path(settings.store.home)
    named = (os.environ if environ is None else environ).get("DSH_HOME")
    if not named:
        return user_home() / ".dsh"
    try:
        return Path(named).expanduser().absolute()
    except (OSError, RuntimeError) as error:
        raise ConfigError(
            f"The environment variable DSH_HOME names a directory that cannot be found: {named!r}.",
            hint="Set DSH_HOME to an absolute path, or give --home.",
        ) from error


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
    from sessionquery.engine import SessionQueryEngine

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
    from sessionquery.engine import SessionQueryEngine

    settings = loaded.settings
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(SessionQueryEngine(engine_options(settings)))
        service = await _open_service(settings, stack, progress) if settings.jev.enabled else None
        yield MemoryWorkflow(engine, settings, service=service, progress=progress)


async def _open_service(
    settings: Settings, stack: AsyncExitStack, progress: Progress | None
) -> EndpointSource:
    from classifier.filter import warm_up
    from runtime.ollama.service import ModelService

    service = ModelService(
        settings.jev,
        warm_up=lambda endpoint: warm_up(endpoint, timeout=settings.jev.load_timeout),
        progress=progress,
    )
    stack.push_async_callback(service.aclose)
    return service

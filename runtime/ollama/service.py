"""The model service that a run asks for its endpoint; managed or not."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import anyio
from dsh_memory.runtime.config.settings import JevSettings
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.runtime.loopback import addresses, literal_url
from dsh_memory.runtime.ollama.environment import service_environment
from dsh_memory.runtime.ollama.errors import (
    LOAD_TIMEOUT,
    NOT_INSTALLED,
    SERVICE_ENDED,
    START_CANCELLED,
    START_FAILED,
    START_TIMEOUT,
    UNMANAGED_HINT,
    OllamaError,
)
from dsh_memory.runtime.ollama.lease import Lease, is_guarded, join, start, start_lock
from dsh_memory.runtime.ollama.model import prepare, require_decision_model
from dsh_memory.runtime.ollama.probe import PROBE_SECONDS, Refused, require_version, version_of
from dsh_memory.runtime.ollama.rendezvous import create, find

if TYPE_CHECKING:
    from dsh_memory.runtime.progress import Progress

START_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 0.05
State = Literal["idle", "starting", "ready", "failed"]
WarmUp = Callable[[Endpoint], Awaitable[None]]


class ModelService:
    """Where the endpoint comes from; use it as an async context manager, or call `aclose`.

    Unmanaged (``jev.manage_ollama`` false) it is what the settings say, and nothing is probed.
    Managed, the first call makes everything ready, later and concurrent calls share the outcome,
    and a failed or cancelled start stays failed for this object's life (document 003).

    Args:
        settings: Enabled and validated Jev settings.
        warm_up: Sends one minimal scoring request; its time limit is ``jev.load_timeout``.
        progress: Is told what is going on.
        environ: The environment that ``ollama`` is looked up in and started with, scrubbed.
        start_seconds: How long a service that was started may take until it answers.
    """

    def __init__(
        self,
        settings: JevSettings,
        *,
        warm_up: WarmUp,
        progress: Progress | None = None,
        environ: Mapping[str, str] | None = None,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._settings = settings
        self._start_seconds = start_seconds
        self._warm_up = warm_up
        self._progress = progress
        self._environ = os.environ if environ is None else environ
        self._turn = anyio.Lock()
        self._state: State = "idle"
        self._closed = False
        self._answered = False
        self._endpoint: Endpoint | None = None
        self._failure: DshMemoryError | None = None
        self._failed_at: float | None = None
        self._lease: Lease | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def endpoint(self) -> Endpoint:
        """Return the endpoint, made ready first in the managed mode.

        Raises:
            OllamaError: ``OLLAMA_*``; again and again once the start has failed.
            JevError: The first scoring request failed (``JEV_*``).
        """
        settings = self._settings
        if not settings.manage_ollama:
            assert settings.context_window is not None, "validated settings state the window"
            return Endpoint(settings.base_url, settings.model, settings.context_window)
        async with self._turn:
            if self._closed:
                raise OllamaError("The model service is closed.", code=SERVICE_ENDED)
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if self._endpoint is None:
                self._endpoint = await self._initialize()
            self._check_lease()
            return self._endpoint

    async def aclose(self) -> None:
        """Give the lease back; what was started here is gone afterwards, unless others use it."""
        self._closed = True
        with anyio.CancelScope(shield=True):
            await self._give_back()

    def state(self) -> dict[str, Any]:
        """Return ``state`` and, after a failure, ``last_failure`` with its time, as JSON."""
        facts: dict[str, Any] = {"state": "closed" if self._closed else self._state}
        if self._failure is not None:
            facts["last_failure"] = {**self._failure.to_json(), "at": self._failed_at}
        if self._endpoint is not None:
            facts["endpoint"] = self._endpoint.base_url
            facts["context_window"] = self._endpoint.context_window
        return facts

    async def _initialize(self) -> Endpoint:
        self._state = "starting"
        try:
            endpoint = await self._make_ready()
            if self._closed:
                raise OllamaError("The model service was closed.", code=SERVICE_ENDED)
        except BaseException as error:
            failure = await self._explain(error)
            self._fail(failure)
            with anyio.CancelScope(shield=True):
                await self._give_back()
            if failure is error or not isinstance(error, Exception):
                raise
            raise failure from error
        self._state = "ready"
        return endpoint

    async def _make_ready(self) -> Endpoint:
        settings = self._settings
        base_url, version = await self._find_or_start()
        require_version(version)
        self._tell(f"Checking the model {settings.model}.")
        facts = await prepare(
            base_url, settings.model, silence=settings.load_timeout, progress=self._progress
        )
        window = require_decision_model(settings.model, facts, cap=settings.context_window)
        endpoint = Endpoint(base_url, settings.model, window)
        self._tell(f"Loading the model {settings.model}.")
        try:
            with anyio.fail_after(settings.load_timeout):
                await self._warm_up(endpoint)
        except TimeoutError as error:
            raise OllamaError(
                f'The model "{settings.model}" was not loaded within {settings.load_timeout:g} s.',
                code=LOAD_TIMEOUT,
                hint="Raise jev.load_timeout, or keep the model loaded with a standing "
                "`ollama serve`.",
            ) from error
        return endpoint

    async def _find_or_start(self) -> tuple[str, str]:
        """Return base URL and version of the running, joined or started service."""
        choices = addresses(self._settings.base_url)
        chosen = choices[0]
        self._tell(f"Looking for Ollama on {self._settings.base_url}.")
        for address, port in choices:
            # Asked again after the answer: a guardian's socket is there before its service is.
            if not self._guarded(address, port):
                try:
                    version = await version_of(address, port)
                except Refused:
                    continue
                if not self._guarded(address, port):
                    return literal_url(address, port), version  # a stranger's: never ended by us
            chosen = address, port
            break
        address, port = chosen
        place = create(address, port)
        async with start_lock(place):
            self._lease = await join(place)
            if self._lease is None:
                with contextlib.suppress(Refused):
                    return literal_url(address, port), await version_of(address, port)
                self._tell("Starting `ollama serve`.")
                environment = service_environment(self._environ, address=address, port=port)
                self._lease = start(place, self._executable(), environment)
            return literal_url(address, port), await self._answering(self._lease, address, port)

    @staticmethod
    def _guarded(address: str, port: int) -> bool:
        place = find(address, port)
        return place is not None and is_guarded(place)

    def _executable(self) -> str:
        found = shutil.which("ollama", path=self._environ.get("PATH", os.defpath))
        if found is None:
            raise OllamaError(
                f"Nothing listens on {self._settings.base_url}, and there is no `ollama` on PATH "
                "to start.",
                code=NOT_INSTALLED,
                hint=f"Install Ollama 0.35.0 or newer, {UNMANAGED_HINT}.",
            )
        return str(Path(found).absolute())

    async def _answering(self, lease: Lease, address: str, port: int) -> str:
        """Wait until the service that the lease keeps answers; return its version."""
        limit = self._start_seconds
        deadline = time.monotonic() + limit
        while True:
            lease.check()
            left = deadline - time.monotonic()
            if left <= 0:
                raise OllamaError(
                    f"`ollama serve` was started but does not answer within {limit:g} s.",
                    code=START_TIMEOUT,
                    hint="Check that `ollama serve` works in a terminal.",
                )
            try:
                version = await version_of(
                    address, port, seconds=max(0.1, min(left, PROBE_SECONDS))
                )
            except Refused:
                await anyio.sleep(_RETRY_SECONDS)
                continue
            except OllamaError as error:
                if isinstance(error.__cause__, TimeoutError):
                    continue  # it listens but does not speak yet
                raise OllamaError(
                    f"`ollama serve` was started but is not healthy: {error.message}",
                    code=START_FAILED,
                    hint="Check that `ollama serve` works in a terminal.",
                ) from error
            lease.check()
            self._answered = True
            return version

    def _check_lease(self) -> None:
        if self._lease is None:
            return
        try:
            self._lease.check()
        except OllamaError as error:
            self._fail(error)
            raise

    async def _explain(self, error: BaseException) -> DshMemoryError:
        """Return the failure that is remembered: the service's end, where that is the cause."""
        if not isinstance(error, Exception):
            return OllamaError(
                "Starting the model service was cancelled; it is not tried again by this process.",
                code=START_CANCELLED,
                hint="Run the command again; in a long-lived server change the configuration or "
                "restart it.",
            )
        if self._lease is not None:
            try:
                await self._lease.check_within(0.3)
            except OllamaError as end:
                if self._answered:
                    return end
                return OllamaError(end.message, code=START_FAILED, hint=end.hint)
        if isinstance(error, DshMemoryError):
            return error
        return OllamaError(f"Starting the model service failed: {error}.", code=START_FAILED)

    def _fail(self, failure: DshMemoryError) -> None:
        self._failure = failure
        self._failed_at = time.time()
        self._state = "failed"

    async def _give_back(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.release()

    def _tell(self, text: str) -> None:
        if self._progress is not None:
            self._progress.service(text)

"""Progress notifications: from the synchronous reports of the stages to the client that waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final, TypeVar

import anyio

T = TypeVar("T")
SendProgress = Callable[[float, float | None, str | None], Awaitable[None]]
_PAUSE: Final = 0.2
"""Seconds between two notifications of one call; reports in between are replaced by later ones."""


class CallProgress:
    """The progress of one call: what was reported last, sent by a task of its own."""

    def __init__(self, send: SendProgress) -> None:
        self._send = send
        self._count = 0
        self._latest: str | None = None
        self._news = anyio.Event()

    def report(self, message: str) -> None:
        """Remember a report for sending; later ones replace it until it is sent."""
        self._latest = message
        self._news.set()

    async def pump(self) -> None:
        """Send reports until cancelled."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            latest, self._latest = self._latest, None
            if latest is not None:
                # The stages follow each other and a pull can run backwards, while the protocol
                # wants a value that only grows: so it counts the notifications.
                self._count += 1
                await self._send(self._count, None, latest)
                await anyio.sleep(_PAUSE)


_CURRENT: ContextVar[CallProgress | None] = ContextVar("dsh_memory_call_progress", default=None)


class ProgressRouter:
    """A `runtime.progress.Progress` for all calls of a server.

    Scoring belongs to the call in whose context it is reported. Starting a service and pulling a
    model is shared work: every call that waits hears of it.
    """

    def __init__(self) -> None:
        self._calls: set[CallProgress] = set()

    async def run(self, send: SendProgress, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work` and report to `send` what happens in it."""
        progress = CallProgress(send)
        token = _CURRENT.set(progress)
        self._calls.add(progress)
        outcome: list[T] = []
        failure: Exception | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(progress.pump)
                try:
                    outcome.append(await work())
                except Exception as error:  # noqa: BLE001 - raised below, without a group around it
                    failure = error
                tasks.cancel_scope.cancel()
        finally:
            self._calls.discard(progress)
            _CURRENT.reset(token)
        if failure is not None:
            raise failure
        return outcome[0]

    def batches(self, done: int, total: int) -> None:
        call = _CURRENT.get()
        if call is not None and total:
            call.report(f"Scored {done} of {total} batches")

    def pull(self, status: str, completed: int | None, total: int | None) -> None:
        share = f" {100 * completed // total} %" if completed is not None and total else ""
        self._tell(f"Model: {status[:200]}{share}")

    def service(self, text: str) -> None:
        self._tell(text[:300])

    def _tell(self, message: str) -> None:
        for call in self._calls:
            call.report(message)

"""Running asynchronous work from a command: signals cancel it, and it cleans up before we leave."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import click

T = TypeVar("T")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class _Outcome:
    value: Any = None
    error: Exception | None = None
    signal: int | None = None


def run_async(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work` to its end and return its value.

    The first SIGINT, SIGTERM or SIGHUP cancels it; after its cleanup the command leaves with
    128 + the signal's number. A second one finds the default handlers and ends the process.

    Raises:
        click.exceptions.Exit: A signal ended the work.
    """
    outcome = _Outcome()
    anyio.run(_supervise, work, outcome)
    if outcome.signal is not None:
        raise click.exceptions.Exit(128 + outcome.signal)
    if outcome.error is not None:
        raise outcome.error
    value: T = outcome.value
    return value


async def _supervise(work: Callable[[], Awaitable[Any]], outcome: _Outcome) -> None:
    async with anyio.create_task_group() as tasks:

        async def listen() -> None:
            with anyio.open_signal_receiver(*_listened_to()) as signals:
                async for number in signals:
                    outcome.signal = number
                    tasks.cancel_scope.cancel()
                    return

        tasks.start_soon(listen)
        try:
            outcome.value = await work()
        except Exception as error:  # noqa: BLE001 - raised by run_async, without an exception group
            outcome.error = error
        tasks.cancel_scope.cancel()


def _listened_to() -> list[signal.Signals]:
    """Return the signals that our starter (`nohup`, a shell's ``&``) has not switched off."""
    return [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]

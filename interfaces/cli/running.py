"""Running asynchronous work from a command: signals cancel it, and it cleans up before we leave."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import click

T = TypeVar("T")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_async(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work` to its end and return its value.

    The first SIGINT, SIGTERM or SIGHUP cancels it; after its cleanup the process leaves with
    128 + the signal's number. A second signal of the kind ends the process at once.
    """
    received: list[int] = []

    async def supervised() -> T:
        values: list[T] = []
        failures: list[BaseException] = []
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                with anyio.open_signal_receiver(*_SIGNALS) as signals:
                    async for number in signals:
                        received.append(number)
                        break
                tasks.cancel_scope.cancel()

            tasks.start_soon(listen)
            try:
                values.append(await work())
            except Exception as error:  # noqa: BLE001 - raised again, outside of the task group
                failures.append(error)
            tasks.cancel_scope.cancel()
        if failures and not received:
            raise failures[0]
        return values[0]

    try:
        return anyio.run(supervised)
    except (IndexError, KeyboardInterrupt):
        if not received:
            raise
    except Exception:
        if not received:
            raise
    leave_by_signal(received[0])
    raise AssertionError  # not reached


def leave_by_signal(number: int) -> None:
    """Leave with the conventional status for a signal."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - nothing half-written is flushed
    raise click.exceptions.Exit(128 + number)

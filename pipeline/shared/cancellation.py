"""One meaning of "cancelled" for the whole run: no work after it, and no result from before it."""

from __future__ import annotations

import anyio.lowlevel
from dsh_memory.runtime.errors import CancelledRunError
from dsh_memory.sessionquery.abort import AbortSignal


async def stop_if_cancelled(signal: AbortSignal | None) -> None:
    """Leave if the surrounding task was cancelled or `signal` is set.

    Raises:
        CancelledRunError: `signal` is set.
        The event loop's own cancellation exception, if the task was cancelled.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    if signal is not None and signal.aborted:
        raise CancelledRunError(
            "The run was cancelled; nothing of it counts.", hint="Run it again.", retryable=True
        )

"""What long work reports while it runs; interfaces decide how, or whether, to show it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives progress. Calls are cheap, come from the event loop, and must not raise."""

    def batches(self, done: int, total: int) -> None:
        """`done` of `total` scoring requests have been answered; first called with 0."""

    def pull(self, status: str, completed: int | None, total: int | None) -> None:
        """The model server reports `status` of a pull, with bytes where it knows them.

        `completed` can run backwards from call to call.
        """

    def service(self, text: str) -> None:
        """A stage of the model service's start-up began; `text` is one short sentence."""

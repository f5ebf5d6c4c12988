"""Reading logs in one thread while another writes them into the index.

SQLite works without the interpreter lock, so both processors are used although logs are parsed in
Python.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

COST_WAITING: Final = 8 << 20
"""How much text (code points) may wait for the writer."""

_Job = tuple[int, Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class DirectPipeline:
    """The same interface without a thread, for small amounts of work."""

    def __enter__(self) -> DirectPipeline:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def send(self, _cost: int, function: Callable[..., Any], *args: Any, **named: Any) -> None:
        function(*args, **named)


class WriterPipeline:
    """Calls functions in one other thread, in order, with bounded backlog.

    Leaving the ``with`` block waits for the thread. A failure there is raised in `send` or, at the
    latest, when the block is left; functions sent after it are not called.
    """

    def __init__(self) -> None:
        self._jobs: deque[_Job] = deque()
        self._waiting = 0
        self._closed = False
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="index-writer", daemon=True)

    def __enter__(self) -> WriterPipeline:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        if error is None and self._failure is not None:
            raise self._failure

    def send(self, cost: int, function: Callable[..., Any], *args: Any, **named: Any) -> None:
        """Have ``function(*args, **named)`` called.

        Args:
            cost: How much text the arguments hold; `send` waits while too much is pending.
        """
        with self._changed:
            while self._waiting > COST_WAITING and self._failure is None:
                self._changed.wait()
            if self._failure is not None:
                raise self._failure
            self._waiting += cost
            self._jobs.append((cost, function, args, named))
            if len(self._jobs) == 1:
                self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._jobs and not self._closed:
                    self._changed.wait()
                if not self._jobs:
                    return
                cost, function, args, named = self._jobs.popleft()
            try:
                function(*args, **named)
            except BaseException as error:  # noqa: BLE001 (raised again by the sender)
                with self._changed:
                    self._failure = error
                    self._jobs.clear()
                    self._changed.notify_all()
                return
            del function, args, named
            with self._changed:
                self._waiting -= cost
                self._changed.notify_all()

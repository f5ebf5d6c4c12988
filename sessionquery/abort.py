"""A cancellation flag that worker threads can poll."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dsh_memory.sessionquery.errors import ABORTED, SessionQueryError


class AbortSignal:
    """Tells synchronous work in a worker thread that its caller has gone.

    The async facade sets it when its task is cancelled; callers may pass one of their own.
    Callbacks (for instance ``sqlite3.Connection.interrupt``) run once, in the aborting thread.
    """

    def __init__(self, *, aborted: bool = False) -> None:
        self._event = threading.Event()
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        if aborted:
            self._event.set()

    @property
    def aborted(self) -> bool:
        return self._event.is_set()

    def abort(self) -> None:
        """Set the flag and run the callbacks; later calls do nothing."""
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_abort(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Register `callback` and return a function that removes it again."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)

                def remove() -> None:
                    with self._lock:
                        if callback in self._callbacks:
                            self._callbacks.remove(callback)

                return remove
        callback()
        return lambda: None

    def raise_if_aborted(self) -> None:
        """Raise ``SESSION_QUERY_ABORTED`` if the flag is set."""
        if self._event.is_set():
            raise SessionQueryError("The query was cancelled.", code=ABORTED, retryable=True)

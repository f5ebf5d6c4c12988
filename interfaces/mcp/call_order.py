"""Exclusive and shared turns of tool calls, in the order in which they arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio


@dataclass(slots=True, eq=False)
class _Waiting:
    exclusive: bool
    ready: anyio.Event = field(default_factory=anyio.Event)


class Turns:
    """A fair lock: an exclusive turn runs alone, shared turns run side by side."""

    def __init__(self) -> None:
        self._shared = 0
        self._exclusive = False
        self._queue: deque[_Waiting] = deque()

    @asynccontextmanager
    async def take(self, *, exclusive: bool) -> AsyncIterator[None]:
        """Wait for a turn and hold it; nobody overtakes an earlier caller."""
        waiting = _Waiting(exclusive)
        self._queue.append(waiting)
        self._admit()
        try:
            await waiting.ready.wait()
        except BaseException:
            if waiting.ready.is_set():
                self._leave(exclusive)
            else:
                self._queue.remove(waiting)
                self._admit()
            raise
        try:
            yield
        finally:
            self._leave(exclusive)

    def _leave(self, exclusive: bool) -> None:
        if exclusive:
            self._exclusive = False
        else:
            self._shared -= 1
        self._admit()

    def _admit(self) -> None:
        while self._queue and not self._exclusive:
            first = self._queue[0]
            if first.exclusive and self._shared:
                return
            self._queue.popleft()
            self._exclusive = first.exclusive
            self._shared += not first.exclusive
            first.ready.set()

"""Progress on stderr: a bar on a terminal after one second, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from dsh_memory.interfaces.cli import output

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, Task, TaskID

Unit = Literal["items", "bytes", "none"]

_PATIENCE = 1.0
"""Seconds before a bar appears; most searches are over by then."""


class TerminalProgress:
    """A `runtime.progress.Progress` for people. It never writes to stdout."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._state: dict[str, tuple[int | None, int | None, Unit]] = {}
        self._last_pull = ""
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()

    def batches(self, done: int, total: int) -> None:
        if total:
            self._update("Scoring batches", done, total, unit="items")

    def pull(self, status: str, completed: int | None, total: int | None) -> None:
        if self._terminal:
            self._update(f"Model: {status}", completed, total, unit="bytes")
        elif status != self._last_pull:
            self._last_pull = status
            output.note(f"Model: {status}")

    def service(self, text: str) -> None:
        if self._terminal:
            self._update(text, None, None)
        else:
            output.note(text)

    def _update(
        self, label: str, done: int | None, total: int | None, *, unit: Unit = "none"
    ) -> None:
        if not self._terminal:
            return
        with self._lock:
            if self._closed:
                return
            self._state[label] = (done, total, unit)
            if self._bar is not None:
                self._show(label)
            elif self._timer is None:
                self._timer = threading.Timer(_PATIENCE, self._start)
                self._timer.daemon = True
                self._timer.start()

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._closed:
                return
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                _amount_column(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            for label in self._state:
                self._show(label)

    def _show(self, label: str) -> None:
        assert self._bar is not None
        done, total, unit = self._state[label]
        if label not in self._tasks:
            self._tasks[label] = self._bar.add_task(output.visible(label), total=total, unit=unit)
        self._bar.update(self._tasks[label], completed=done or 0, total=total)


def _amount_column() -> ProgressColumn:
    """Return a column with bytes and speed of a pull, and the numbers of everything counted."""
    from rich.progress import (
        DownloadColumn,
        MofNCompleteColumn,
        ProgressColumn,
        TransferSpeedColumn,
    )
    from rich.text import Text

    class AmountColumn(ProgressColumn):
        def __init__(self) -> None:
            super().__init__()
            self._count = MofNCompleteColumn()
            self._bytes = (DownloadColumn(), TransferSpeedColumn())

        def render(self, task: Task) -> Text:
            unit: Unit = task.fields["unit"] if task.total is not None else "none"
            if unit == "bytes":
                size, speed = (column.render(task) for column in self._bytes)
                return Text.assemble(size, " ", speed)
            return self._count.render(task) if unit == "items" else Text()

    return AmountColumn()

"""The note stage: one note for each completed page, none for a run that was given up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
from dsh_memory.exporters.errors import CANCELLED, ObsidianError
from dsh_memory.exporters.note import NoteContent
from dsh_memory.pipeline.memory.render import render_search
from dsh_memory.pipeline.memory.requests import SearchRequest
from dsh_memory.pipeline.memory.results import SearchResult
from dsh_memory.runtime.errors import CancelledRunError
from dsh_memory.sessionquery.abort import AbortSignal


def note_content(
    kind: Literal["recall", "review"],
    request: SearchRequest,
    result: SearchResult,
    *,
    created: datetime | None = None,
) -> NoteContent:
    """Return what a note of `result` says; `created` is now unless given."""
    return NoteContent(
        kind=kind,
        query=request.query,
        question=request.question,
        scope=request.scope,
        cwd=request.cwd,
        session_id=request.session_id,
        model=None if result.jev is None else result.jev.model,
        history=render_search(result),
        page=result.to_json(),
        created=created or datetime.now(UTC),
    )


async def export_note(
    vault_path: str, content: NoteContent, *, signal: AbortSignal | None = None
) -> Path:
    """Write the note in a worker thread.

    If the task is cancelled or `signal` is set meanwhile, the writer stops, its file is removed,
    whether partial or just completed, and the cancellation goes on only after that.

    Raises:
        ObsidianError: The note could not be written.
        CancelledRunError: `signal` was set.
    """
    from dsh_memory.exporters.obsidian import write_note

    given_up = threading.Event()
    forget = signal.on_abort(given_up.set) if signal is not None else None
    written = _InThread(
        lambda: write_note(vault_path, content, cancelled=given_up.is_set), given_up
    )
    try:
        return await written.run()
    except ObsidianError as error:
        if error.code == CANCELLED:
            raise CancelledRunError(error.message, hint=error.hint, retryable=True) from error
        raise
    except anyio.get_cancelled_exc_class():
        if written.path is not None:
            written.path.unlink(missing_ok=True)
        raise
    finally:
        if forget is not None:
            forget()


class _InThread:
    """Runs `work` in a thread that nobody leaves behind; cancellation sets `given_up` and waits."""

    def __init__(self, work: Callable[[], Path], given_up: threading.Event) -> None:
        self._work = work
        self._given_up = given_up
        self._error: Exception | None = None
        self.path: Path | None = None

    async def run(self) -> Path:
        finished = anyio.Event()

        async def shielded() -> None:
            with anyio.CancelScope(shield=True):
                try:
                    self.path = await anyio.to_thread.run_sync(self._work)
                except Exception as error:  # noqa: BLE001 - raised below, outside the task group
                    self._error = error
                finished.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shielded)
            try:
                await finished.wait()
            except anyio.get_cancelled_exc_class():
                self._given_up.set()
                raise
        if self._error is not None:
            raise self._error
        assert self.path is not None
        return self.path

"""A cancelled run does no further work, shows nothing, and leaves no note."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import dsh_memory.exporters.obsidian
import pytest
from dsh_memory.exporters.note import NoteContent
from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.runtime.errors import CancelledRunError
from dsh_memory.sessionquery.abort import AbortSignal

pytestmark = pytest.mark.anyio
Open = Callable[..., MemoryWorkflow]
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("page", {"query": "x"}),
    ("page", {"query": "x", "session_id": "root"}),
    ("read_value", {"session_id": "root", "seq": 5}),
]


@pytest.mark.parametrize(("method", "request_value"), REQUESTS)
async def test_an_aborted_signal_prevents_any_work(
    engine: Any, open_workflow: Open, method: str, request_value: Any
) -> None:
    with pytest.raises(CancelledRunError) as caught:
        await getattr(open_workflow(), method)(request_value, signal=AbortSignal(aborted=True))
    assert caught.value.code == "CANCELLED"
    assert engine.calls == []


@pytest.mark.parametrize(("method", "request_value"), REQUESTS)
async def test_a_cancelled_task_does_no_work(
    engine: Any, open_workflow: Open, method: str, request_value: Any
) -> None:
    reached = False
    with anyio.CancelScope() as scope:
        scope.cancel()
        await getattr(open_workflow(), method)(request_value)
        reached = True
    assert not reached
    assert engine.calls == []


@pytest.mark.parametrize(("method", "request_value"), REQUESTS)
async def test_a_result_that_arrives_after_the_abort_is_discarded(
    engine: Any,
    open_workflow: Open,
    page_of: Any,
    window_of: Any,
    said: Any,
    header: Any,
    hit: Any,
    method: str,
    request_value: Any,
) -> None:
    signal = AbortSignal()

    async def abort() -> None:
        signal.abort()

    page_of(hit("root"))
    window_of(said(5, "text"))
    engine.during = dict.fromkeys(("search_sessions", "search_events", "read_event"), abort)
    with pytest.raises(CancelledRunError):
        await getattr(open_workflow(), method)(request_value, signal=signal)
    assert len(engine.calls) == 1


async def test_no_header_is_read_after_the_abort(
    engine: Any, open_workflow: Open, page_of: Any, hit: Any
) -> None:
    signal = AbortSignal()

    async def abort() -> None:
        signal.abort()

    page_of(hit("one"), hit("two"), hit("three"))
    engine.during = {"read_header": abort}
    with pytest.raises(CancelledRunError):
        await open_workflow().page({"query": "x"}, signal=signal)
    assert engine.names == ["search_sessions", "read_header"]


async def test_no_header_is_read_after_the_task_was_cancelled(
    engine: Any, open_workflow: Open, page_of: Any, hit: Any
) -> None:
    page_of(hit("one"), hit("two"))
    with anyio.CancelScope() as scope:

        async def cancel() -> None:
            scope.cancel()

        engine.during = {"read_header": cancel}
        await open_workflow().page({"query": "x"})
    assert scope.cancelled_caught
    assert engine.names == ["search_sessions", "read_header"]


class _SlowWriter:
    """The real writer, but it waits at its first look at the cancellation flag."""

    def __init__(self, *, ignore: bool = False) -> None:
        self.started = threading.Event()
        self.go_on = threading.Event()
        self.ended = threading.Event()
        self._ignore = ignore
        self._write = dsh_memory.exporters.obsidian.write_note

    def __call__(self, vault: str, content: NoteContent, *, cancelled: Callable[[], bool]) -> Path:
        def look() -> bool:
            self.started.set()
            assert self.go_on.wait(30)
            return False if self._ignore else cancelled()

        try:
            return self._write(vault, content, cancelled=look)
        finally:
            self.ended.set()


@pytest.mark.parametrize("completes", [False, True])
async def test_a_run_cancelled_while_its_note_is_written_leaves_no_note(
    open_workflow: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, completes: bool
) -> None:
    writer = _SlowWriter(ignore=completes)
    monkeypatch.setattr(dsh_memory.exporters.obsidian, "write_note", writer)
    workflow = open_workflow(obsidian={"enabled": True, "vault_path": str(tmp_path)})
    finished = False

    async def run() -> None:
        nonlocal finished
        await workflow.page({"query": "x"})
        finished = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await anyio.to_thread.run_sync(writer.started.wait)
        tasks.cancel_scope.cancel()
        # The run must not end before its writer has; so let the writer go on only now.
        writer.go_on.set()
    assert writer.ended.is_set()
    assert not finished
    assert list(tmp_path.iterdir()) == []


async def test_an_aborted_signal_stops_the_note_too(
    open_workflow: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = _SlowWriter()
    monkeypatch.setattr(dsh_memory.exporters.obsidian, "write_note", writer)
    workflow = open_workflow(obsidian={"enabled": True, "vault_path": str(tmp_path)})
    signal = AbortSignal()

    async def abort() -> None:
        await anyio.to_thread.run_sync(writer.started.wait)
        signal.abort()
        writer.go_on.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(abort)
        with pytest.raises(CancelledRunError):
            await workflow.page({"query": "x"}, signal=signal)
    assert list(tmp_path.iterdir()) == []

"""The asynchronous face: cancellation, signals, closing, other processes' locks."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.writer_locks import locks_visible, write_locked_inodes
from dsh_memory.sessionquery.engine import SessionQueryEngine
from dsh_memory.sessionquery.errors import (
    ABORTED,
    CORRUPT_SESSION,
    PERSISTENCE_FAILED,
    SEARCH_DISABLED,
    SESSION_NOT_FOUND,
    SessionQueryError,
)
from dsh_memory.sessionquery.live import LiveSessions
from dsh_memory.sessionquery.model.options import EngineOptions
from dsh_memory.sessionquery.model.sessions import SessionHeader
from dsh_memory.sessionquery.operations import run_operation
from made_stores import MadeStore, user

pytestmark = pytest.mark.anyio


def engine_for(store: MadeStore, **options: Any) -> SessionQueryEngine:
    return SessionQueryEngine(
        EngineOptions(home=str(store.home), **{"index_path": ":memory:"} | options)
    )


async def test_a_cancelled_call_ends_its_work_before_the_task_goes_on(
    make_store: Callable[[], MadeStore],
) -> None:
    engine = engine_for(make_store())
    started, ended = threading.Event(), threading.Event()

    def work(*, signal: AbortSignal) -> None:
        started.set()
        aborted = threading.Event()
        signal.on_abort(aborted.set)
        aborted.wait()
        ended.set()
        signal.raise_if_aborted()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                await anyio.to_thread.run_sync(started.wait)
                scope.cancel()

            group.start_soon(cancel)
            await engine._call(work, None)
    assert scope.cancelled_caught
    assert ended.is_set()


async def test_a_signal_of_the_caller_ends_the_work(make_store: Callable[[], MadeStore]) -> None:
    engine = engine_for(make_store())
    signal = AbortSignal()

    def work(*, signal: AbortSignal) -> None:
        aborted = threading.Event()
        signal.on_abort(aborted.set)
        theirs.abort()
        aborted.wait()
        signal.raise_if_aborted()

    theirs = signal
    with pytest.raises(SessionQueryError) as caught:
        await engine._call(work, signal)
    assert caught.value.code == ABORTED


async def test_an_aborted_signal_does_no_work(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write("s", [user(0)])
    engine = engine_for(store)
    aborted = AbortSignal(aborted=True)
    for call in (
        engine.list_sessions(signal=aborted),
        engine.read_event("s", 0, signal=aborted),
        engine.read_header("s", signal=aborted),
        engine.observe_session("s", signal=aborted),
        engine.trace_session("s", signal=aborted),
        engine.read_titles(["s", "t"], signal=aborted),
    ):
        with pytest.raises(SessionQueryError) as caught:
            await call
        assert caught.value.code == ABORTED


async def test_many_calls_run_at_once(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    for n in range(5):
        store.write(f"s{n}", [user(0, f"text {n}")])
    seen: dict[int, str] = {}
    async with engine_for(store) as engine:

        async def read(n: int) -> None:
            (document,) = await engine.filter_events(f"s{n % 5}", [])
            seen[n] = document.text

        async with anyio.create_task_group() as group:
            for n in range(20):
                group.start_soon(read, n)
    assert seen == {n: f"text {n % 5}" for n in range(20)}


async def test_the_authoritative_header_is_a_live_sessions_or_the_logs(
    make_store: Callable[[], MadeStore],
) -> None:
    store = make_store()
    store.write("s", [user(0)], origin="subagent", delegationDepth=1)
    store.write_bytes(store.path("empty"), b"")
    store.write_bytes(store.path("bad", encoding="zstd"), b"no frame")
    live = LiveSessions()
    live.create(SessionHeader("live", 5, is_seeded=False, delegation_depth=None))
    engine = SessionQueryEngine(EngineOptions(home=str(store.home)), live=live)
    assert (await engine.read_header("s")).is_main is False
    assert (await engine.read_header("live")).is_main is True
    codes = {}
    for session_id in ("nobody", "empty", "bad", "", None, 5):
        with pytest.raises(SessionQueryError) as caught:
            await engine.read_header(session_id)
        codes[session_id] = caught.value.code
    assert codes == {
        "nobody": SESSION_NOT_FOUND,
        "empty": SESSION_NOT_FOUND,
        "bad": CORRUPT_SESSION,
        "": PERSISTENCE_FAILED,
        None: PERSISTENCE_FAILED,
        5: SESSION_NOT_FOUND,
    }


async def test_search_switched_off_is_told_before_anything_else(
    make_store: Callable[[], MadeStore],
) -> None:
    async with engine_for(make_store(), open_at="never") as engine:
        with pytest.raises(SessionQueryError) as sessions:
            await engine.search_sessions(5)
        with pytest.raises(SessionQueryError) as events:
            await engine.search_events(5, None, limit="x")
    assert sessions.value.code == events.value.code == SEARCH_DISABLED


async def test_an_engine_may_be_closed_twice(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write("s", [user(0, "needle")])
    engine = engine_for(store, open_at="startup")
    async with engine:
        assert len((await engine.search_sessions("needle")).items) == 1
    await engine.aclose()


async def test_operations_have_the_original_names(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write("s", [user(0, "needle")])
    async with engine_for(store) as engine:
        page = await run_operation(engine, "searchSessions", {"query": "needle"})
        assert page["items"][0]["bestMatch"]["snippet"] == "needle"
        observed = await run_operation(engine, "observeSessionFull", {"sessionId": "s"})
        assert "source" not in observed
        with pytest.raises(SessionQueryError, match="text"):
            await run_operation(engine, "searchSessions", {"query": "needle", "cursor": None})
        with pytest.raises(DshMemoryError, match="dropTables"):
            await run_operation(engine, "dropTables", {})


LOCKER = """
import fcntl, sys
handle = open(sys.argv[1], "w")
fcntl.flock(handle, fcntl.LOCK_EX if sys.argv[2] == "write" else fcntl.LOCK_SH)
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(path: Path, kind: str) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-c", LOCKER, str(path), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        yield
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.skipif(not locks_visible(), reason="this system does not list its locks")
async def test_a_session_that_another_process_writes_is_live(
    make_store: Callable[[], MadeStore],
) -> None:
    store = make_store()
    for name in ("written", "shared", "idle"):
        path = store.write(name, [user(0)])
        (path.parent / "session.lock").touch()
    engine = engine_for(store)
    with (
        locked(store.path("written").parent / "session.lock", "write"),
        locked(store.path("shared").parent / "session.lock", "read"),
    ):
        during = {record.header.id: record.live for record in await engine.list_sessions()}
    after = {record.header.id: record.live for record in await engine.list_sessions()}
    assert during == {"written": True, "shared": False, "idle": False}
    assert after == dict.fromkeys(during, False)


async def test_only_granted_exclusive_flocks_count() -> None:
    table = (
        "1: FLOCK  ADVISORY  WRITE 15894 fe:00:2146876 0 EOF\n"
        "1: -> FLOCK  ADVISORY  WRITE 15895 fe:00:77 0 EOF\n"
        "2: FLOCK  ADVISORY  READ 15896 fe:00:78 0 EOF\n"
        "3: POSIX  ADVISORY  WRITE 15897 fe:00:79 0 EOF\n"
        "nonsense\n"
    )
    assert write_locked_inodes(table) == {(0xFE, 0, 2146876)}


async def test_the_package_offers_its_public_names_lazily() -> None:
    code = (
        "import sys, sessionquery\n"
        "assert 'anyio' not in sys.modules\n"
        "import dsh_memory.sessionquery.engine\n"
        "heavy = {'zstandard', 'dsh_memory.sessionquery.rules.session'}\n"
        "heavy |= {'dsh_memory.sessionquery.reads.reader'}\n"
        "assert not heavy & set(sys.modules)\n"
        "assert all(getattr(sessionquery, name) for name in sessionquery.__all__)\n"
        "assert 'dsh_memory.sessionquery.generations.migration' not in sys.modules\n"
        "assert not hasattr(sessionquery, 'nothing')\n"
    )
    done = await anyio.run_process([sys.executable, "-c", code], check=False)
    assert done.returncode == 0, done.stderr.decode()

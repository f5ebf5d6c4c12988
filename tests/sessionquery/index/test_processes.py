from __future__ import annotations

import json
import os
import shutil
import signal as signals
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import SessionQueryError
from index_stores import Home, Searcher

MakeSearcher = Callable[..., Searcher]

SEARCH = """
import json, sys
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.index.search import SearchIndex
from dsh_memory.sessionquery.live import LiveSessions
from dsh_memory.sessionquery.model import EngineOptions
from dsh_memory.sessionquery.store.store import SessionStore

home, path = sys.argv[1:3]
print("ready", flush=True)
index = SearchIndex(
    EngineOptions(home=home, index_path=path), SessionStore(home), LiveSessions()
)
page = index.search_sessions("newt", limit=100, signal=AbortSignal())
print(json.dumps([[hit.header.id for hit in page.items], list(page.diagnostics)]))
index.close()
"""


def child(home: Home, path: Path, *prefix: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", SEARCH, str(home.path), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> tuple[list[str], list[str]]:
    out, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    ids, diagnostics = json.loads(out.splitlines()[-1])
    return ids, diagnostics


@pytest.fixture
def big_home(home: Home) -> Home:
    """Enough text that reading it takes a noticeable time."""
    text = "newt " + " ".join(f"w{n}" for n in range(3000))
    for n in range(60):
        home.session(f"s{n:02d}", *[f"{text} s{n} r{row}" for row in range(12)], zstd=True)
    return home


ALL = sorted(f"s{n:02d}" for n in range(60))


def test_two_cold_searches_at_once(big_home: Home, index_path: Path) -> None:
    both = [child(big_home, index_path) for _ in range(2)]
    answers = [answer(process) for process in both]
    assert [sorted(ids) for ids, _ in answers] == [ALL, ALL]
    assert answers[0] == answers[1]
    assert answers[0][1] == []


def test_a_search_while_another_process_indexes(
    big_home: Home, index_path: Path, searcher: MakeSearcher
) -> None:
    other = child(big_home, index_path)
    assert other.stdout is not None
    other.stdout.readline()
    wait_for(lambda: index_path.exists())
    assert sorted(searcher().ids("newt", limit=100)) == ALL
    assert sorted(answer(other)[0]) == ALL


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.parametrize("after", [0.0, 0.05, 0.15, 0.4])
def test_a_writer_killed_in_the_middle_loses_nothing(
    big_home: Home, index_path: Path, searcher: MakeSearcher, after: float
) -> None:
    victim = child(big_home, index_path)
    assert victim.stdout is not None
    victim.stdout.readline()
    wait_for(lambda: index_path.exists())
    time.sleep(after)
    victim.kill()
    victim.communicate()
    page = searcher().sessions("newt", limit=100)
    assert sorted(hit.header.id for hit in page.items) == ALL
    assert page.diagnostics == ()
    fresh = searcher(path=":memory:").sessions("newt", limit=100)
    assert page.items == fresh.items


def test_a_database_locked_for_a_moment_is_waited_for(
    home: Home, index_path: Path, searcher: MakeSearcher
) -> None:
    log = home.session("s", "newt")
    search = searcher()
    search.ids("newt")
    other = sqlite3.connect(index_path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
    timer.start()
    try:
        log.say("salamander")
        page = search.sessions("salamander")
        assert [hit.header.id for hit in page.items] == ["s"]
        assert page.diagnostics == ()
    finally:
        timer.join()
        other.close()


def test_a_database_kept_exclusively_for_a_moment_is_waited_for(
    home: Home, index_path: Path, searcher: MakeSearcher
) -> None:
    home.session("s", "newt")
    first = searcher()
    first.ids("newt")
    first.index.close()
    other = sqlite3.connect(index_path, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, other.close)
    timer.start()
    try:
        page = searcher().sessions("newt")
    finally:
        timer.join()
    assert [hit.header.id for hit in page.items] == ["s"]
    assert page.diagnostics == ()


class EndsAfter(AbortSignal):
    """Aborts itself at its n-th poll."""

    def __init__(self, polls: int) -> None:
        super().__init__()
        self.left = polls

    def raise_if_aborted(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.abort()
        super().raise_if_aborted()


@pytest.mark.parametrize("polls", [1, 5, 62, 70, 120])
def test_aborting_ends_the_indexing_and_keeps_what_is_done(
    big_home: Home, searcher: MakeSearcher, polls: int
) -> None:
    search = searcher()
    with pytest.raises(SessionQueryError) as caught:
        search.sessions("newt", signal=EndsAfter(polls))
    assert caught.value.code == "SESSION_QUERY_ABORTED"
    assert sorted(search.ids("newt", limit=100)) == ALL


def test_a_waiting_search_can_be_aborted(big_home: Home, searcher: MakeSearcher) -> None:
    search = searcher()
    signal = AbortSignal()
    assert search.index._mutex.acquire()
    try:
        threading.Timer(0.05, signal.abort).start()
        with pytest.raises(SessionQueryError) as caught:
            search.sessions("newt", signal=signal)
        assert caught.value.code == "SESSION_QUERY_ABORTED"
    finally:
        search.index._mutex.release()


def test_waiting_for_another_writer_can_be_aborted(
    home: Home, index_path: Path, searcher: MakeSearcher
) -> None:
    import fcntl

    log = home.session("s", "newt")
    search = searcher()
    search.ids("newt")
    log.say("more")
    handle = os.open(f"{index_path}.lock", os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        signal = AbortSignal()
        threading.Timer(0.05, signal.abort).start()
        with pytest.raises(SessionQueryError) as caught:
            search.sessions("newt", signal=signal)
        assert caught.value.code == "SESSION_QUERY_ABORTED"
    finally:
        os.close(handle)
    assert search.ids("more") == ["s"]


def test_threads_may_share_an_index(big_home: Home, searcher: MakeSearcher) -> None:
    search = searcher()
    results: list[list[str]] = []

    def ask() -> None:
        for _ in range(3):
            results.append(sorted(search.ids("newt", limit=100)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [ALL] * 12


def needs_mounts() -> str | None:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return "needs Linux mount namespaces"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True
    )
    return None if done.returncode == 0 else "mount namespaces are not allowed here"


@contextmanager
def mounted(script: str) -> Iterator[list[str]]:
    """Return a command prefix that runs the rest after `script` in a mount namespace."""
    reason = needs_mounts()
    if reason is not None:
        pytest.skip(reason)
    yield ["unshare", "-rm", "sh", "-c", f'{script}; exec "$@"', "sh"]


def only_diagnostic(diagnostics: list[str], index_path: Path) -> None:
    (text,) = diagnostics
    assert str(index_path) in text
    assert "in memory" in text


def test_a_read_only_cache_directory(home: Home, index_path: Path) -> None:
    home.session("s", "newt")
    index_path.parent.mkdir()
    folder = index_path.parent
    script = f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"
    with mounted(script) as prefix:
        ids, diagnostics = answer(child(home, index_path, *prefix))
    assert ids == ["s"]
    only_diagnostic(diagnostics, index_path)
    assert list(folder.iterdir()) == []


def test_a_read_only_directory_with_an_index_in_it(
    home: Home, index_path: Path, searcher: MakeSearcher
) -> None:
    home.session("s", "newt")
    search = searcher()
    search.ids("newt")
    search.index.close()
    folder = index_path.parent
    script = f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"
    with mounted(script) as prefix:
        ids, diagnostics = answer(child(home, index_path, *prefix))
    assert ids == ["s"]
    only_diagnostic(diagnostics, index_path)


@pytest.mark.parametrize("kib", [16, 64, 256, 1024])
def test_a_full_disk(big_home: Home, index_path: Path, kib: int) -> None:
    index_path.parent.mkdir()
    script = f"mount -t tmpfs -o size={kib}k none {index_path.parent}"
    with mounted(script) as prefix:
        ids, diagnostics = answer(child(big_home, index_path, *prefix))
    assert sorted(ids) == ALL
    only_diagnostic(diagnostics, index_path)


def test_an_unreachable_cache_directory_as_another_user(home: Home, tmp_path: Path) -> None:
    home.session("s", "newt")
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the folder should be")
    ids, diagnostics = answer(child(home, blocked / "index.sqlite3"))
    assert ids == ["s"]
    only_diagnostic(diagnostics, blocked / "index.sqlite3")


def test_an_index_that_nobody_closed_is_still_good(home: Home, index_path: Path) -> None:
    home.session("s", "newt")
    careless = SEARCH.replace("index.close()", "")
    command = [sys.executable, "-c", careless, str(home.path), str(index_path)]
    inodes = set()
    for _ in range(3):
        subprocess.run(command, check=True, capture_output=True)
        inodes.add(index_path.stat().st_ino)
    assert len(inodes) == 1


def test_a_signal_that_ends_the_process_leaves_a_usable_index(
    big_home: Home, index_path: Path, searcher: MakeSearcher
) -> None:
    victim = child(big_home, index_path)
    assert victim.stdout is not None
    victim.stdout.readline()
    wait_for(lambda: index_path.exists())
    victim.send_signal(signals.SIGTERM)
    victim.communicate()
    assert sorted(searcher().ids("newt", limit=100)) == ALL

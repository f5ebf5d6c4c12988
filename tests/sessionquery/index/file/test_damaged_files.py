"""Damage to the files around an index, and to an index that something else has a hold on."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dsh_memory.sessionquery.errors import SessionQueryError
from dsh_memory.sessionquery.index.file.location import locate_index
from dsh_memory.sessionquery.index.file.schema import PAGE_SIZE
from index_stores import Home, Searcher

MakeSearcher = Callable[..., Searcher]

FRAME = PAGE_SIZE + 24

WRITER = """
import sys
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.index.search import SearchIndex
from dsh_memory.sessionquery.live import LiveSessions
from dsh_memory.sessionquery.model import EngineOptions
from dsh_memory.sessionquery.store.store import SessionStore

home, path = sys.argv[1:3]
index = SearchIndex(EngineOptions(home=home, index_path=path), SessionStore(home), LiveSessions())
for line in sys.stdin:
    index.search_sessions("newt", signal=AbortSignal())
    print("done", flush=True)
"""

READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM docs").fetchone()
print("reading", flush=True)
sys.stdin.read()
"""


@contextmanager
def killed_at_the_end(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def refresh(writer: subprocess.Popen[str]) -> None:
    assert writer.stdin is not None
    assert writer.stdout is not None
    writer.stdin.write("again\n")
    writer.stdin.flush()
    assert writer.stdout.readline() == "done\n"


def answers(search: Searcher) -> list[object]:
    return [search.sessions(word, limit=100).items for word in ("newt", "alpha", "beta", "word7")]


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3, 0.4, None])
def test_damage_to_a_log_that_a_reader_kept_after_copying_never_changes_an_answer(
    home: Home, searcher: MakeSearcher, index_path: Path, share: float | None
) -> None:
    logs = [
        home.session(f"s{n}", *[f"newt word{row} " + "padding " * 300 for row in range(12)])
        for n in range(6)
    ]
    first = searcher()
    first.ids("newt")
    first.index.close()
    with killed_at_the_end(WRITER, home.path, index_path) as writer:
        logs[0].say("alpha newt")
        refresh(writer)
        for _ in range(30):
            logs[1].say("beta newt " + "y " * 3000)
        refresh(writer)
        with killed_at_the_end(READER, index_path) as reader:
            assert reader.stdout is not None
            reader.stdout.readline()
            # Deleted text is to leave the files at once, but the reader needs the log.
            logs[2].path.unlink()
            refresh(writer)
            writer.kill()
            writer.wait()
    wal = Path(f"{index_path}-wal")
    frames = wal.stat().st_size // FRAME
    assert frames > 50
    if share is None:
        wal.unlink()
    else:
        with wal.open("r+b") as handle:
            place = 32 + int(frames * share) * FRAME + 1000
            handle.seek(place)
            (byte,) = handle.read(1)
            handle.seek(place)
            handle.write(bytes([byte ^ 1]))
    assert answers(searcher()) == answers(searcher(path=":memory:"))


def test_a_log_that_a_reader_kept_stays_in_use(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    logs = [home.session(f"s{n}", "newt") for n in range(3)]
    search = searcher()
    search.ids("newt")
    reader = sqlite3.connect(index_path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM docs").fetchone()
    try:
        logs[0].path.unlink()
        assert search.ids("newt") == ["s1", "s2"]
        inode = index_path.stat().st_ino
        for log in logs[1:]:
            log.say("more")
            assert log.path.parent.name in search.ids("more")
            assert log.path.parent.name in searcher().ids("more")
    finally:
        reader.close()
    search.index.close()
    assert searcher().ids("more") == ["s1", "s2"]
    assert index_path.stat().st_ino == inode


@pytest.mark.parametrize("content", [b"\xff" * 10, b"9 9 9 9", b"precious " * 100, b""])
def test_a_damaged_lock_file_of_an_index_does_not_matter(
    home: Home, searcher: MakeSearcher, index_path: Path, content: bytes
) -> None:
    home.session("s", "newt")
    search = searcher()
    search.ids("newt")
    search.index.close()
    lock = Path(f"{index_path}.lock")
    lock.write_bytes(content)
    page = searcher().sessions("newt")
    assert [hit.header.id for hit in page.items] == ["s"]
    assert page.diagnostics == ()


def test_a_foreign_file_at_the_place_of_the_lock_is_left_alone(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    home.session("s", "newt")
    index_path.parent.mkdir()
    lock = Path(f"{index_path}.lock")
    lock.write_text("somebody's notes\n" * 50)
    with pytest.raises(SessionQueryError, match=r"index\.sqlite3\.lock") as caught:
        searcher().ids("newt")
    assert caught.value.code == "SESSION_QUERY_INDEX_FAILED"
    assert lock.read_text() == "somebody's notes\n" * 50
    assert list(index_path.parent.iterdir()) == [lock]


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_a_lock_that_is_no_file_leaves_the_index_in_memory(
    home: Home, searcher: MakeSearcher, index_path: Path, kind: str
) -> None:
    home.session("s", "newt")
    index_path.parent.mkdir()
    lock = Path(f"{index_path}.lock")
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(index_path.parent / "elsewhere")
    for _ in range(2):
        page = searcher().sessions("newt")
        assert [hit.header.id for hit in page.items] == ["s"]
        (text,) = page.diagnostics
        assert "in memory" in text
    assert [stat.S_ISREG(file.lstat().st_mode) for file in index_path.parent.iterdir()] == [False]


def test_a_damaged_schema_whose_message_is_no_text_is_rebuilt(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    home.session("s", "newt")
    search = searcher()
    search.ids("newt")
    search.index.close()
    data = index_path.read_bytes()
    assert b"CREATE TABLE" in data
    index_path.write_bytes(data.replace(b"CREATE TABLE", b"CREATE\xa0TABLE"))
    page = searcher().sessions("newt")
    assert [hit.header.id for hit in page.items] == ["s"]
    assert page.diagnostics == ()


@pytest.mark.parametrize("damage", ["version in the header", "version", "home", "table name"])
def test_damaged_marks_at_the_default_place_are_rebuilt(
    home: Home,
    searcher: MakeSearcher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: str,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    home.session("s", "newt")
    place = locate_index(str(home.path), None).path
    assert place is not None
    search = searcher(path=str(place))
    search.ids("newt")
    search.index.close()
    connection = sqlite3.connect(place)
    statement = {
        "version in the header": "PRAGMA user_version = 77",
        "version": "UPDATE meta SET value = 77 WHERE key = 'version'",
        "home": "UPDATE meta SET value = value || 'x' WHERE key = 'home'",
        "table name": "ALTER TABLE directories RENAME TO directorie",
    }[damage]
    connection.execute(statement)
    connection.commit()
    connection.close()

    from dsh_memory.sessionquery.index.search import SearchIndex
    from dsh_memory.sessionquery.live import LiveSessions
    from dsh_memory.sessionquery.model.options import EngineOptions
    from dsh_memory.sessionquery.store.store import SessionStore

    options = EngineOptions(home=str(home.path))
    again = Searcher(SearchIndex(options, SessionStore(home.path), LiveSessions()))
    try:
        assert again.ids("newt") == ["s"]
        assert again.sessions("newt").diagnostics == ()
    finally:
        again.index.close()

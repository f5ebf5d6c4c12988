from __future__ import annotations

import hashlib
import os
import random
import re
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from dsh_memory.sessionquery.errors import SessionQueryError
from dsh_memory.sessionquery.index.file import schema
from dsh_memory.sessionquery.index.file.location import locate_index
from index_stores import T0, Home, Searcher, user_message

MakeSearcher = Callable[..., Searcher]


def filled(home: Home) -> None:
    for n in range(8):
        home.session(f"s{n}", *[f"newt word{n} " + "padding " * 50] * 5)


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(SessionQueryError) as caught:
        call()
    assert caught.value.code == "SESSION_QUERY_INDEX_FAILED"


def test_the_default_place_is_named_after_home_and_version(
    home: Home, searcher: MakeSearcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    link = tmp_path / "link"
    link.symlink_to(home.path)
    location = locate_index(str(link), None)
    assert location.path is not None
    digest = hashlib.sha256(str(home.path.resolve()).encode()).hexdigest()[:16]
    assert location.path.name == f"{digest}-i{schema.INDEX_VERSION}.sqlite3"
    assert tmp_path in location.path.parents


def test_the_files_are_for_their_owner_only(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    filled(home)
    before = os.umask(0)
    try:
        search = searcher()
        search.ids("newt")
        modes = {
            file.name: stat.S_IMODE(file.stat().st_mode) for file in index_path.parent.iterdir()
        }
    finally:
        os.umask(before)
    assert index_path.name in modes
    assert f"{index_path.name}-wal" in modes
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(index_path.parent.stat().st_mode) == 0o700


def test_in_memory_leaves_no_file(home: Home, searcher: MakeSearcher, tmp_path: Path) -> None:
    filled(home)
    assert len(searcher(path=":memory:").ids("newt")) == 8
    assert not (tmp_path / "cache").exists()


def test_a_closed_index_is_one_file_and_its_lock(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    filled(home)
    search = searcher()
    search.ids("newt")
    search.index.close()
    names = {file.name for file in index_path.parent.iterdir()}
    assert names == {index_path.name, f"{index_path.name}.lock"}
    assert len(searcher().ids("newt")) == 8


@pytest.mark.parametrize("kind", ["text", "database", "our mark, more tables", "folder"])
def test_a_foreign_file_is_refused_and_left_alone(
    home: Home, searcher: MakeSearcher, index_path: Path, kind: str
) -> None:
    index_path.parent.mkdir()
    if kind == "folder":
        index_path.mkdir()
        refused(lambda: searcher().ids("newt"))
        assert list(index_path.parent.iterdir()) == [index_path]
        return
    if kind == "text":
        index_path.write_text("my precious notes\n" * 100)
    else:
        connection = sqlite3.connect(index_path)
        connection.execute("CREATE TABLE accounts(name)")
        if kind.startswith("our mark"):
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {schema.INDEX_VERSION}")
        connection.commit()
        connection.close()
    before = (index_path.read_bytes(), index_path.stat().st_mtime_ns)
    refused(lambda: searcher().ids("newt"))
    assert (index_path.read_bytes(), index_path.stat().st_mtime_ns) == before
    assert list(index_path.parent.iterdir()) == [index_path]


def test_the_index_of_another_home_is_refused(
    home: Home, searcher: MakeSearcher, index_path: Path, tmp_path: Path
) -> None:
    filled(home)
    search = searcher()
    search.ids("newt")
    search.index.close()
    before = index_path.read_bytes()
    home.path.rename(tmp_path / "elsewhere")
    home.path = tmp_path / "elsewhere"
    refused(lambda: searcher().ids("newt"))
    assert index_path.read_bytes() == before


def test_the_index_of_another_version_is_refused(
    home: Home, searcher: MakeSearcher, index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dsh_memory.sessionquery.index.file import location

    filled(home)
    with monkeypatch.context() as patch:
        for module in (schema, location):
            patch.setattr(module, "INDEX_VERSION", schema.INDEX_VERSION + 1)
        search = searcher()
        search.ids("newt")
        search.index.close()
    before = index_path.read_bytes()
    refused(lambda: searcher().ids("newt"))
    assert index_path.read_bytes() == before


@pytest.mark.parametrize("keep", [0, 10, 100, 5000, 0.5, 0.99])
def test_a_truncated_file_is_rebuilt(
    home: Home, searcher: MakeSearcher, index_path: Path, keep: float
) -> None:
    filled(home)
    search = searcher()
    whole = search.sessions("newt")
    search.index.close()
    size = index_path.stat().st_size
    left = int(size * keep) if isinstance(keep, float) else keep
    os.truncate(index_path, left)
    if 0 < left < 100:
        # Nothing shows any more that it was ours.
        refused(lambda: searcher().ids("newt"))
        return
    assert searcher().sessions("newt") == whole


@pytest.mark.parametrize("seed", range(25))
def test_flipped_bits_never_change_an_answer(
    home: Home, searcher: MakeSearcher, index_path: Path, seed: int
) -> None:
    filled(home)
    search = searcher()
    whole = [search.sessions("newt"), search.events("s3", "word3")]
    search.index.close()
    chance = random.Random(seed)
    data = bytearray(index_path.read_bytes())
    for _ in range(chance.choice([1, 1, 20])):
        data[chance.randrange(100, len(data))] ^= 1 << chance.randrange(8)
    index_path.write_bytes(data)
    again = searcher()
    assert [again.sessions("newt"), again.events("s3", "word3")] == whole


def test_flipped_bits_under_an_open_index_are_noticed(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    filled(home)
    search = searcher()
    whole = search.sessions("newt")
    search.index.close()
    search.sessions("newt")
    data = bytearray(index_path.read_bytes())
    at = data.find(b"word3")
    data[at] ^= 1
    with index_path.open("r+b") as handle:
        handle.seek(at)
        handle.write(data[at : at + 1])
    assert search.sessions("newt") == whole
    assert [hit.seq for hit in search.events("s3", "word3").items] == [4, 3, 2, 1, 0]


def test_a_damaged_default_file_is_replaced_even_without_a_header(
    home: Home, searcher: MakeSearcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    filled(home)
    place = locate_index(str(home.path), None).path
    assert place is not None
    place.parent.mkdir(parents=True)
    place.write_bytes(b"\x00garbage" * 1000)
    from dsh_memory.sessionquery.index.search import SearchIndex
    from dsh_memory.sessionquery.live import LiveSessions
    from dsh_memory.sessionquery.model.options import EngineOptions
    from dsh_memory.sessionquery.store.store import SessionStore

    options = EngineOptions(home=str(home.path))
    search = Searcher(SearchIndex(options, SessionStore(home.path), LiveSessions()))
    try:
        assert len(search.ids("newt")) == 8
        assert search.sessions("newt").diagnostics == ()
    finally:
        search.index.close()


def test_a_replaced_file_is_opened_anew(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    filled(home)
    first, second = searcher(), searcher()
    whole = first.sessions("newt")
    assert second.sessions("newt") == whole
    index_path.unlink()
    assert second.sessions("newt") == whole
    assert first.sessions("newt") == whole
    assert first.index._keeper._database is not None
    assert first.index._keeper._database.inode == index_path.stat().st_ino


def test_the_text_of_a_deleted_session_leaves_the_files(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    filled(home)
    secret = home.session("secret", "the quintessential passphrase xyzzy12345")
    search = searcher()
    assert search.ids("xyzzy12345") == ["secret"]
    search.index.close()
    assert b"xyzzy12345" in index_path.read_bytes()
    secret.path.unlink()
    assert search.ids("xyzzy12345") == []

    def traces() -> list[str]:
        return [
            file.name
            for file in index_path.parent.iterdir()
            if re.search(b"xyzzy|quintessential", file.read_bytes())
        ]

    assert traces() == []
    search.index.close()
    assert traces() == []


def test_the_text_of_a_rewritten_row_leaves_the_files(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    filled(home)
    log = home.session("s", "newt", "xyzzy12345 in clear")
    search = searcher()
    assert search.ids("xyzzy12345") == ["s"]
    log.rewrite(home.header("s"), [user_message(0, "newt", T0), user_message(1, "***", T0 + 1)])
    assert search.ids("xyzzy12345") == []
    for file in index_path.parent.iterdir():
        assert b"xyzzy" not in file.read_bytes(), file.name


def test_opening_at_startup_finds_a_foreign_file(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    from dsh_memory.sessionquery.abort import AbortSignal

    index_path.parent.mkdir()
    index_path.write_bytes(b"something else" * 100)
    refused(lambda: searcher().index.open(signal=AbortSignal()))

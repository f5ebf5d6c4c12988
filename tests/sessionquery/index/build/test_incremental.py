from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.sessionquery.errors import SessionQueryError
from dsh_memory.sessionquery.index import lifecycle as keeper
from index_stores import T0, Home, Log, Searcher, user_message

MakeSearcher = Callable[..., Searcher]


def many(home: Home, count: int = 30) -> list[Log]:
    return [
        home.session(f"s{n}", "newt", f"word{n}", cwd=f"/w{n % 3}", zstd=n % 2 == 0)
        for n in range(count)
    ]


@pytest.mark.usefixtures("trusting_times")
def test_an_unchanged_store_is_neither_listed_nor_opened(
    home: Home, searcher: MakeSearcher, opened: Any
) -> None:
    many(home)
    search = searcher()
    with opened:
        assert len(search.ids("newt", limit=100)) == 30
    assert len(opened.logs) == 30
    for again in (search, searcher()):
        with opened:
            assert len(again.ids("newt", limit=100)) == 30
            assert again.events("s3", "word3").items[0].seq == 1
        assert opened.logs == []
        assert opened.listed == []


@pytest.mark.usefixtures("trusting_times")
def test_after_one_append_that_log_and_no_other_is_read(
    home: Home, searcher: MakeSearcher, opened: Any
) -> None:
    logs = many(home)
    search = searcher()
    search.ids("newt")
    logs[7].say("salamander")
    with opened:
        assert search.ids("salamander") == ["s7"]
    assert set(opened.logs) == {str(logs[7].path)}
    assert opened.listed == []
    with opened:
        assert searcher().ids("salamander") == ["s7"]
    assert opened.logs == []


def test_nothing_is_read_once_the_times_are_two_seconds_old(
    home: Home, searcher: MakeSearcher, opened: Any
) -> None:
    many(home, 4)
    search = searcher()
    search.ids("newt")
    time.sleep(2.1)
    # The times were recent when the logs were read, so they are checked once more.
    with opened:
        search.ids("newt")
    assert len(opened.logs) == 4
    for again in (search, searcher()):
        with opened:
            assert len(again.ids("newt")) == 4
        assert opened.logs == []
        assert opened.listed == []


def test_a_rewrite_that_no_time_shows_is_found_while_the_times_are_recent(
    home: Home, searcher: MakeSearcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = home.session("s", "newt", "older")
    search = searcher()
    assert search.ids("older") == ["s"]
    # A file system with coarse times: nothing but the bytes differs.
    monkeypatch.setattr(keeper, "discover", lambda root, previous, *, signal: previous)
    data = log.path.read_bytes()
    log.path.write_bytes(data.replace(b"older", b"newer"))
    assert search.ids("newer") == ["s"]
    assert search.ids("older") == []


@pytest.mark.usefixtures("trusting_times")
def test_a_rewrite_in_place_with_the_old_mtime_is_noticed(
    home: Home, searcher: MakeSearcher
) -> None:
    log = home.session("s", "newt", "older")
    search = searcher()
    assert search.ids("older") == ["s"]
    before = log.path.stat()
    data = log.path.read_bytes()
    with log.path.open("r+b") as handle:
        handle.write(data.replace(b"older", b"newer"))
    os.utime(log.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert search.ids("older") == []
    assert search.ids("newer") == ["s"]


def shrink(home: Home, log: Log) -> None:
    log.rewrite(home.header("s"), [user_message(0, "newt", T0)])


def delete_log(home: Home, log: Log) -> None:
    log.path.unlink()


def delete_folder(home: Home, log: Log) -> None:
    log.path.unlink()
    log.path.parent.rmdir()


def newer_generation(home: Home, log: Log) -> None:
    data = log.path.read_bytes().replace(b'"version":4', b'"version":5')
    (log.path.parent / "session.v5.jsonl").write_bytes(data)


@pytest.mark.usefixtures("trusting_times")
@pytest.mark.parametrize("change", [shrink, delete_log, delete_folder, newer_generation])
def test_what_is_gone_from_the_store_is_not_found_any_more(
    home: Home, searcher: MakeSearcher, change: Callable[[Home, Log], None]
) -> None:
    log = home.session("s", "newt", "axolotl")
    home.session("other", "axolotl")
    search = searcher()
    assert set(search.ids("axolotl")) == {"s", "other"}
    change(home, log)
    assert search.ids("axolotl") == ["other"]
    assert searcher().ids("axolotl") == ["other"]


@pytest.mark.usefixtures("trusting_times")
def test_a_moved_session_is_found_in_its_new_place(home: Home, searcher: MakeSearcher) -> None:
    log = home.session("s", "newt", cwd="/old")
    search = searcher()
    search.ids("newt")
    home.session("s", "newt", cwd="/new")
    log.path.unlink()
    assert [hit.header.cwd for hit in search.sessions("newt").items] == ["/new"]


@pytest.mark.usefixtures("trusting_times")
def test_the_other_encoding_may_take_over(home: Home, searcher: MakeSearcher) -> None:
    log = home.session("s", "newt older")
    search = searcher()
    search.ids("newt")
    log.path.unlink()
    home.session("s", "newt newer", zstd=True)
    assert search.ids("newer") == ["s"]
    assert search.ids("older") == []


@pytest.mark.usefixtures("trusting_times")
def test_a_changed_document_replaces_the_old_one(home: Home, searcher: MakeSearcher) -> None:
    log = home.session("s", "one newt", "two newt", "three newt")
    search = searcher()
    assert len(search.events("s", "newt").items) == 3
    log.rewrite(
        home.header("s"),
        [user_message(n, f"{word} newt", T0 + n) for n, word in enumerate(["one", "2", "three"])],
    )
    assert search.ids("two") == []
    assert [hit.seq for hit in search.events("s", "2").items] == [1]
    assert len(search.events("s", "newt").items) == 3


@pytest.mark.usefixtures("trusting_times")
def test_closing_rows_go_when_the_turn_goes_on(home: Home, searcher: MakeSearcher) -> None:
    log = home.session("s", "newt")
    log.append_rows([{"type": "turn/start", "seq": 1, "time": T0, "data": {"turn": 1}}])
    search = searcher()
    assert [hit.seq for hit in search.events("s", "interrupted").items] == [2]
    log.append_rows([user_message(2, "go on", T0 + 5)])
    assert [hit.seq for hit in search.events("s", "interrupted").items] == [3]
    end = {"turn": 1, "reason": {"kind": "completed"}}
    log.append_rows([{"type": "turn/end", "seq": 3, "time": T0 + 9, "data": end}])
    assert search.events("s", "interrupted").items == ()


@pytest.mark.usefixtures("trusting_times")
def test_a_log_of_many_pieces_is_complete_and_its_surface_right(
    home: Home, searcher: MakeSearcher
) -> None:
    filler = "padding words " * 40_000
    log = home.session("s", "first newt", *[filler] * 14, "last newt", zstd=True)
    summary = user_message(16, "summary newt", T0 + 60_000)
    summary["surfaceOp"] = {"op": "replace", "startSeq": 1, "endSeq": 15}
    summary["sourceEventSeqs"] = list(range(1, 16))
    log.append_rows([summary])
    log.append_rows([{"type": "turn/start", "seq": 17, "time": T0 + 61_000, "data": {"turn": 1}}])
    search = searcher()

    def surfaces(query: str) -> dict[int, str]:
        return {hit.seq: hit.surface for hit in search.events("s", query).items}

    assert surfaces("newt") == {0: "current", 15: "shadowed", 16: "current"}
    assert surfaces("interrupted") == {18: "log-only"}
    log.say("more newt", T0 + 62_000)
    assert surfaces("newt") == {0: "current", 15: "shadowed", 16: "current", 18: "current"}
    assert surfaces("interrupted") == {19: "log-only"}


@pytest.mark.usefixtures("trusting_times")
def test_a_corrupt_log_of_many_pieces_leaves_nothing_behind(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    home.session("ok", "newt")
    filler = "padding words " * 40_000
    bad = home.session("bad", *[filler] * 14)
    orphan = {"type": "turn/end", "seq": 14, "time": T0, "data": {"turn": 1, "reason": {}}}
    bad.append_rows([orphan])
    assert searcher(unreadable="skip").ids("newt") == ["ok"]
    assert searcher(unreadable="skip").ids("padding") == []
    with pytest.raises(SessionQueryError) as caught:
        searcher().ids("newt")
    assert caught.value.code == "SESSION_QUERY_PERSISTENCE_FAILED"

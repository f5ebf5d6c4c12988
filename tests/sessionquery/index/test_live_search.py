from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

import pytest
from dsh_memory.sessionquery.disk.writer_locks import locks_visible
from dsh_memory.sessionquery.errors import SessionQueryError
from dsh_memory.sessionquery.live import LiveSessions
from dsh_memory.sessionquery.model.sessions import SessionHeader
from index_stores import T0, Home, Searcher, user_message

MakeSearcher = Callable[..., Searcher]


def header(session_id: str, created: int = T0, cwd: str | None = "/w") -> SessionHeader:
    return SessionHeader(
        id=session_id, created_at=created, is_seeded=False, delegation_depth=0, cwd=cwd
    )


def test_live_sessions_rank_among_persisted_ones(home: Home, searcher: MakeSearcher) -> None:
    home.session("three", "newt newt newt")
    home.session("one", "newt")
    live = LiveSessions()
    live.create(header("two"), [user_message(0, "newt newt", T0)])
    page = searcher(live=live).sessions("newt")
    assert [(hit.header.id, hit.live, hit.persisted) for hit in page.items] == [
        ("three", False, True),
        ("two", True, False),
        ("one", False, True),
    ]
    assert [hit.best_match.snippet for hit in page.items] == ["newt newt newt", "newt newt", "newt"]


def test_a_live_session_hides_the_persisted_one(home: Home, searcher: MakeSearcher) -> None:
    home.session("s", "newt older")
    live = LiveSessions()
    search = searcher(live=live)
    assert search.ids("older") == ["s"]
    session = live.create(header("s"), [user_message(0, "newt newer", T0)])
    assert search.ids("older") == []
    (hit,) = search.sessions("newer").items
    assert (hit.live, hit.persisted) == (True, True)
    session.append("user/message", user_message(1, "and more", T0)["data"], surface_op="append")
    assert [hit.seq for hit in search.events("s", "more").items] == [1]
    live.remove("s")
    assert search.ids("older") == ["s"]
    assert search.ids("newer") == []


def test_different_headers_are_a_conflict(home: Home, searcher: MakeSearcher) -> None:
    home.session("s", "newt")
    live = LiveSessions()
    live.create(header("s", created=T0 + 1))
    with pytest.raises(SessionQueryError) as caught:
        searcher(live=live).ids("newt")
    assert caught.value.code == "SESSION_QUERY_SOURCE_CONFLICT"


def test_a_live_session_replaced_by_another_is_searched_anew(
    home: Home, searcher: MakeSearcher
) -> None:
    live = LiveSessions()
    search = searcher(live=live)
    live.create(header("s"), [user_message(0, "first", T0)])
    assert search.ids("first") == ["s"]
    live.create(header("s"), [user_message(0, "second", T0)])
    assert search.ids("first") == []
    assert search.ids("second") == ["s"]


def test_pages_go_over_both_kinds(home: Home, searcher: MakeSearcher) -> None:
    live = LiveSessions()
    for n in range(3):
        home.session(f"p{n}", "newt " * (n + 1))
        live.create(header(f"v{n}"), [user_message(0, "newt " * (n + 1) + "x", T0)])
    search = searcher(live=live)
    pages = search.pages("newt", limit=2)
    assert pages == [["p2", "v2"], ["p1", "v1"], ["p0", "v0"]]


@pytest.mark.skipif(not locks_visible(), reason="this system does not show its file locks")
def test_a_session_whose_lock_is_held_is_live(home: Home, searcher: MakeSearcher) -> None:
    log = home.session("busy", "newt newt")
    home.session("idle", "newt")
    lock = log.path.parent / "session.lock"
    handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
    search = searcher()
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        page = search.sessions("newt")
        assert [(hit.header.id, hit.live) for hit in page.items] == [
            ("busy", True),
            ("idle", False),
        ]
        only_live = [{"kind": "availability", "values": ["live"]}]
        assert search.ids("newt", session_filters=only_live) == ["busy"]
    finally:
        os.close(handle)
    assert search.ids("newt", session_filters=only_live) == []


def test_an_unreadable_live_session_fails_searches_only_while_it_is_there(
    home: Home, searcher: MakeSearcher
) -> None:
    home.session("p", "newt")
    live = LiveSessions()
    search = searcher(live=live)
    live.create(header("good"), [user_message(0, "newt live", T0)])
    bad = live.create(header("s"), [user_message(0, "newt soon", T0)])
    live.create(header("later"), [user_message(0, "newt last", T0)])
    assert sorted(search.ids("newt")) == ["good", "later", "p", "s"]
    bad.append("todo/write", None)
    for _ in range(2):
        with pytest.raises(SessionQueryError) as caught:
            search.ids("newt")
        assert caught.value.code == "SESSION_QUERY_PERSISTENCE_FAILED"
    live.create(header("s"), [user_message(0, "newt anew", T0)])
    assert sorted(search.ids("newt")) == ["good", "later", "p", "s"]
    assert search.ids("soon") == []
    live.remove("s")
    assert sorted(search.ids("newt")) == ["good", "later", "p"]


@pytest.mark.parametrize("session_id", ["\ud800", "a/../b", "", "\0"])
def test_a_live_session_may_have_any_id(
    home: Home, searcher: MakeSearcher, session_id: str
) -> None:
    live = LiveSessions()
    live.create(header(session_id, cwd="\udc80"), [user_message(0, "newt \ud83d", T0)])
    page = searcher(live=live).sessions("newt")
    (hit,) = page.items
    assert (hit.header.id, hit.header.cwd) == (session_id, "\udc80")
    assert hit.best_match.snippet == "newt \ufffd"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dsh_memory.sessionquery.errors import SessionQueryError
from index_stores import T0, Home, Searcher

MakeSearcher = Callable[..., Searcher]
ORPHAN_END = {"type": "turn/end", "seq": 1, "time": T0, "data": {"turn": 1, "reason": {}}}


@pytest.fixture
def broken(home: Home) -> Home:
    home.session("ok", "newt")
    home.session("bad", "newt newt").append_rows([ORPHAN_END])
    return home


def test_fail_names_the_file_and_the_remedy(broken: Home, searcher: MakeSearcher) -> None:
    for _ in range(2):
        with pytest.raises(SessionQueryError) as caught:
            searcher().ids("newt")
        assert caught.value.code == "SESSION_QUERY_PERSISTENCE_FAILED"
        assert "bad/session.v4.jsonl" in caught.value.message
        assert "dsh-memory config set store.unreadable skip" in (caught.value.hint or "")


def test_fail_also_ends_a_search_in_a_healthy_session(broken: Home, searcher: MakeSearcher) -> None:
    with pytest.raises(SessionQueryError):
        searcher().events("ok", "newt")


def test_an_invalid_surface_has_its_own_code(home: Home, searcher: MakeSearcher) -> None:
    home.session("ok", "newt")
    where = {"turn": 1, "step": 1}
    call = {"type": "tool-call", "id": "c", "name": "read", "arguments": "{}"}
    model = {"kind": "model", "provider": "p", "model": "m"}
    tool = {"kind": "tool", "callId": "c"}
    result = {"role": "tool", "toolCallId": "c", "isError": False, "content": [], "source": tool}
    said = {"role": "assistant", "content": [call], "source": model, "id": "a"}
    whole: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("turn/start", {"turn": 1}, {}),
        ("step/start", where, {}),
        (
            "assistant/message",
            {**where, "message": said, "usage": {}, "stream": []},
            {"surfaceOp": "append"},
        ),
        ("tool/call", {**where, "callId": "c", "name": "read", "arguments": "{}"}, {}),
        ("tool/result", {**where, "message": {**result, "id": "r"}}, {"surfaceOp": "append"}),
        (
            "tool/result",
            {**where, "message": {**result, "id": "another"}},
            {
                "surfaceOp": {"op": "replace", "startSeq": 4, "endSeq": 4},
                "sourceEventSeqs": [4],
            },
        ),
    ]
    home.session("bad").append_rows(
        [
            {"type": kind, "seq": seq, "time": T0, "data": data, **envelope}
            for seq, (kind, data, envelope) in enumerate(whole)
        ]
    )
    for ask in (
        lambda: searcher().ids("newt"),
        lambda: searcher().events("ok", "newt"),
        lambda: searcher(unreadable="skip").events("bad", "newt"),
    ):
        with pytest.raises(SessionQueryError) as caught:
            ask()
        assert caught.value.code == "SESSION_QUERY_INVALID_SURFACE"
    assert searcher(unreadable="skip").ids("newt") == ["ok"]


def test_skip_leaves_out_and_says_so_on_every_result(broken: Home, searcher: MakeSearcher) -> None:
    search = searcher(unreadable="skip")
    for page in (search.sessions("newt"), search.events("ok", "newt"), search.sessions("zz")):
        (problem,) = page.unreadable_sessions
        assert problem.session_id == "bad"
        assert problem.path.endswith("bad/session.v4.jsonl")
        assert problem.code == "SESSION_QUERY_CORRUPT_SESSION"
        assert problem.reason
    assert search.ids("newt") == ["ok"]


def test_skip_fails_for_the_bad_session_itself(broken: Home, searcher: MakeSearcher) -> None:
    with pytest.raises(SessionQueryError) as caught:
        searcher(unreadable="skip").events("bad", "newt")
    assert caught.value.code == "SESSION_QUERY_PERSISTENCE_FAILED"


@pytest.mark.usefixtures("trusting_times")
def test_a_repaired_log_is_searchable_again(
    broken: Home, searcher: MakeSearcher, opened: Any
) -> None:
    search = searcher(unreadable="skip")
    search.ids("newt")
    with opened:
        search.ids("newt")
    assert opened.logs == []
    broken.session("bad", "newt newt")
    page = search.sessions("newt")
    assert [hit.header.id for hit in page.items] == ["bad", "ok"]
    assert page.unreadable_sessions == ()

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import SessionQueryError
from dsh_memory.sessionquery.index.query.requests import (
    SearchQuery,
    parse_event_search,
    parse_session_search,
)
from dsh_memory.sessionquery.model.options import EngineOptions

OPTIONS = EngineOptions(home="/nowhere")
ID = {"kind": "id", "values": ["x"]}
SEQ = {"kind": "seq", "from": 0}
BOTH_ENDS = {"kind": "seq", "from": 0, "to": 9}


def code_of(call: Callable[[], Any]) -> str:
    with pytest.raises(SessionQueryError) as caught:
        call()
    return caught.value.code.removeprefix("SESSION_QUERY_")


def sessions(query: Any = "x", **arguments: Any) -> SearchQuery:
    return parse_session_search(OPTIONS, query, **arguments)


def events(query: Any = "x", session_id: Any = "s", **arguments: Any) -> SearchQuery:
    return parse_event_search(OPTIONS, session_id, query, **arguments)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"session_filters": [{"kind": "?"}], "cursor": 5, "query": ""}, "INVALID_FILTER"),
        ({"cursor": 5, "query": "", "limit": 0}, "INVALID_CURSOR"),
        ({"cursor": "bad", "query": "", "limit": 0}, "INVALID_QUERY"),
        ({"cursor": "bad", "limit": 0, "session_filters": [ID] * 15}, "INVALID_LIMIT"),
        ({"cursor": "bad", "session_filters": [ID] * 15}, "INVALID_FILTER"),
        ({"query": "nul\0"}, "INVALID_QUERY"),
        ({"query": "\u3000\ufeff "}, "INVALID_QUERY"),
        ({"query": None}, "INVALID_QUERY"),
        ({"limit": True}, "INVALID_LIMIT"),
        ({"limit": 1.5}, "INVALID_LIMIT"),
        ({"limit": "5"}, "INVALID_LIMIT"),
        ({"limit": 101}, "INVALID_LIMIT"),
    ],
)
def test_the_first_fault_in_the_original_order_decides(
    arguments: dict[str, Any], code: str
) -> None:
    assert code_of(lambda: sessions(**arguments)) == code


def test_a_session_id_is_looked_at_before_the_filters() -> None:
    assert code_of(lambda: events(session_id=5, filters="?", query="")) == "INVALID_FILTER"


def test_never_is_answered_before_anything_else() -> None:
    never = EngineOptions(home="/nowhere", open_at="never")
    assert code_of(lambda: parse_session_search(never, "")) == "SEARCH_DISABLED"
    assert code_of(lambda: parse_event_search(never, 5, "", cursor=5)) == "SEARCH_DISABLED"


@pytest.mark.parametrize(
    ("clause", "most"),
    [
        (ID, 14),
        ({"kind": "id", "values": []}, 14),
        ({"kind": "cwd", "values": [None, "/x"]}, 14),
        ({"kind": "availability", "values": ["live"]}, 14),
        ({"kind": "availability", "values": []}, 14),
        ({"kind": "created-at", "from": 1}, 14),
        ({"kind": "created-at", "from": 1, "to": 2}, 7),
    ],
)
def test_a_session_search_has_fourteen_conditions(clause: dict[str, Any], most: int) -> None:
    sessions(session_filters=[clause] * most)
    assert code_of(lambda: sessions(session_filters=[clause] * (most + 1))) == "INVALID_FILTER"


@pytest.mark.parametrize(
    "clause", [{"kind": "created-at"}, {"kind": "availability", "values": ["live", "persisted"]}]
)
def test_clauses_without_a_condition_are_free(clause: dict[str, Any]) -> None:
    sessions(session_filters=[clause] * 40)


def test_both_filter_lists_share_the_conditions() -> None:
    sessions(session_filters=[ID] * 7, event_filters=[SEQ] * 7)
    over = {"session_filters": [ID] * 7, "event_filters": [SEQ] * 8}
    assert code_of(lambda: sessions(**over)) == "INVALID_FILTER"


def test_an_event_search_has_thirteen_conditions() -> None:
    events(filters=[SEQ] * 13)
    assert code_of(lambda: events(filters=[SEQ] * 14)) == "INVALID_FILTER"
    events(filters=[BOTH_ENDS] * 6)
    assert code_of(lambda: events(filters=[BOTH_ENDS] * 7)) == "INVALID_FILTER"


def test_values_that_mean_the_same_have_one_fingerprint() -> None:
    first = sessions(
        "  a\u3000b ",
        session_filters=[
            {"kind": "id", "values": ["y", "x", "x"]},
            {"kind": "created-at", "from": 1},
        ],
        limit=20.0,
    )
    second = sessions(
        "a b",
        session_filters=[{"kind": "created-at", "from": 1.0}, {"kind": "id", "values": ["x", "y"]}],
    )
    assert first.fingerprint == second.fingerprint


def test_anything_else_has_another_fingerprint() -> None:
    requests = [
        sessions("a"),
        sessions("A"),
        sessions("a", limit=19),
        sessions("a", session_filters=[ID]),
        sessions("a", event_filters=[SEQ]),
        sessions("a", event_filters=[BOTH_ENDS]),
        sessions("a", session_filters=[{"kind": "cwd", "values": [None]}]),
        sessions("a", session_filters=[{"kind": "cwd", "values": [""]}]),
        events("a", "x"),
        events("a", "y"),
    ]
    assert len({request.fingerprint for request in requests}) == len(requests)


def test_lone_surrogates_in_a_query_become_the_replacement_character() -> None:
    assert sessions("a\ud800b \udcff").text == "a\ufffdb \ufffd"


def test_an_aborted_signal_ends_a_valid_request_and_no_other(
    searcher: Callable[..., Any],
) -> None:
    search = searcher()
    gone = AbortSignal(aborted=True)
    assert code_of(lambda: search.sessions("", signal=gone)) == "INVALID_QUERY"
    assert code_of(lambda: search.sessions("x", cursor="bad", signal=gone)) == "ABORTED"
    assert code_of(lambda: search.events("nope", "x", signal=gone)) == "ABORTED"

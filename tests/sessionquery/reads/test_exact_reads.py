"""Filters, order, lineage and matching beyond what the recorded answers show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import INVALID_FILTER, INVALID_LINEAGE, SessionQueryError
from dsh_memory.sessionquery.filters import (
    parse_event_filters,
    parse_session_filters,
    session_predicate,
)
from dsh_memory.sessionquery.js.casefold import literal_matcher, simple_fold
from dsh_memory.sessionquery.js.collation import id_sort_key
from dsh_memory.sessionquery.live import LiveSessions
from dsh_memory.sessionquery.model.reads import LineageNode
from dsh_memory.sessionquery.model.sessions import SessionHeader, SessionRecord
from dsh_memory.sessionquery.model.wire import to_wire
from dsh_memory.sessionquery.reads.lineage import trace_lineage
from dsh_memory.sessionquery.reads.reader import SessionReader
from dsh_memory.sessionquery.store.store import SessionStore
from hypothesis import given
from hypothesis import strategies as st
from made_stores import T0, MadeStore, replace, user

SIGNAL = AbortSignal()


def record(session_id: str, parent: str | None = None, created: int = 0) -> SessionRecord:
    header = SessionHeader(session_id, created, False, 0, parent_session=parent)
    return SessionRecord(header, live=False, persisted=True)


def test_ids_of_one_time_sort_as_in_the_root_collation() -> None:
    ids = ["tie-Z", "tie-é", "tie-b", "tie-A", "tie-a", "tie-2", "tie-10", "tie-1", "tie-_"]
    assert sorted(ids, key=id_sort_key) == [
        "tie-_", "tie-1", "tie-10", "tie-2", "tie-a", "tie-A", "tie-b", "tie-é", "tie-Z",
    ]  # fmt: skip
    others = ["æ", "af", "ae", "ß", "ss", "st", "½", "1", "2", "º", "o", "O", "ø", "õ", "日", "þ"]
    assert sorted(others, key=id_sort_key) == [
        "1", "½", "2", "ae", "æ", "af", "o", "O", "º", "õ", "ø", "ss", "ß", "st", "þ", "日",
    ]  # fmt: skip


@given(st.text(max_size=8), st.text(max_size=8))
def test_only_equal_ids_have_equal_keys(first: str, second: str) -> None:
    assert (id_sort_key(first) == id_sort_key(second)) == (first == second)


@given(st.text(max_size=30))
def test_folding_keeps_the_length_and_is_stable(text: str) -> None:
    folded = simple_fold(text)
    assert len(folded) == len(text)
    assert simple_fold(folded) == folded


@pytest.mark.parametrize("first", ["K", "\u212a", "k"])
@pytest.mark.parametrize("second", ["K", "\u212a", "k"])
def test_the_kelvin_sign_is_a_k(first: str, second: str) -> None:
    assert literal_matcher(first)(f"a{second}b")


@pytest.mark.parametrize(
    ("needle", "text", "found"),
    [
        ("ẞ", "straße", True),
        ("ss", "straße", False),
        ("İ", "istanbul", False),
        ("\u0390", "\u1fd3", True),
        ("\ufb05", "\ufb06", True),
        ("a  b", "A\u3000\n b", True),
        ("a b", "ab", False),
        ("a.b", "axb", False),
        ("(x", "f(X)", True),
        ("a b", "a\u0085b", False),
    ],
)
def test_literal_matching(needle: str, text: str, found: bool) -> None:
    assert literal_matcher(needle)(text) is found


@pytest.mark.parametrize(
    "filters",
    [
        None,
        {},
        "x",
        [None],
        [5],
        [{"kind": None}],
        [{"kind": "seq", "from": 1}],
        [{"kind": "id"}],
        [{"kind": "id", "values": [None]}],
        [{"kind": "created-at", "from": None}],
        [{"kind": "created-at", "from": True}],
        [{"kind": "created-at", "from": 2, "to": 1}],
        [{"kind": "created-at", "to": float("inf")}],
        [{"kind": "availability", "values": ["gone"]}],
    ],
)
def test_wrong_session_filters_are_refused(filters: Any) -> None:
    with pytest.raises(SessionQueryError) as caught:
        parse_session_filters(filters)
    assert caught.value.code == INVALID_FILTER


def test_a_search_takes_no_text_clause() -> None:
    clause = [{"kind": "text", "text": "x"}]
    assert parse_event_filters(clause)
    with pytest.raises(SessionQueryError, match="no text clause"):
        parse_event_filters(clause, allow_text=False)


def test_filters_are_checked_before_the_session(make_store: Callable[[], MadeStore]) -> None:
    with pytest.raises(SessionQueryError) as caught:
        make_store().reader().filter_events("nobody", "x", signal=SIGNAL)
    assert caught.value.code == INVALID_FILTER


def test_a_deep_line_of_descendants_is_followed() -> None:
    count = 5000
    records = {"0": record("0")}
    records |= {str(n): record(str(n), str(n - 1), n) for n in range(1, count)}
    trace = trace_lineage(records["0"], records)
    depth, nodes = 0, trace.descendants
    while nodes:
        depth, nodes = depth + 1, nodes[0].descendants
    assert depth == count - 1
    wire = to_wire(trace)["descendants"]
    assert wire[0]["descendants"][0]["session"]["header"]["id"] == "2"
    assert len(trace_lineage(records[str(count - 1)], records).ancestors) == count - 1


def test_children_are_ordered_by_time_then_id() -> None:
    children = [record("b", "p", 2), record("a", "p", 2), record("z", "p", 1)]
    records = {entry.header.id: entry for entry in [record("p"), *children]}
    nodes = trace_lineage(records["p"], records).descendants
    assert [node.session.header.id for node in nodes] == ["z", "a", "b"]
    assert nodes[0] == LineageNode(children[2])


@pytest.mark.parametrize("parents", [{"a": "a"}, {"a": "b", "b": "a"}])
def test_a_circle_of_ancestors_is_refused(parents: dict[str, str]) -> None:
    records = {name: record(name, parent) for name, parent in parents.items()}
    with pytest.raises(SessionQueryError) as caught:
        trace_lineage(records["a"], records)
    assert caught.value.code == INVALID_LINEAGE


def test_a_chain_of_replacements_is_followed(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write(
        "s",
        [
            user(0),
            user(1),
            user(2, surface=replace(0, 1), sources=[0, 1]),
            user(3, surface=replace(2, 2), sources=[2]),
        ],
    )
    trace = store.reader().trace_event("s", 0, signal=SIGNAL)
    assert (trace.replaced_by, trace.replacement_chain) == (2, (2, 3))
    assert trace.derived_event_seqs == (2,)
    second = store.reader().trace_event("s", 2.0, signal=SIGNAL)
    assert second.replaced_event_seqs == (0, 1)
    assert second.source_event_seqs == (0, 1)


def test_a_window_is_cut_at_the_ends(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write("s", [user(n) for n in range(5)])
    window = store.reader().read_event("s", 4, before=2.0, after=50, signal=SIGNAL)
    assert (window.start_seq, window.end_seq) == (2, 4)
    assert window.target["seq"] == 4
    with pytest.raises(SessionQueryError, match="from 0 to 3"):
        SessionReader(SessionStore(store.home), LiveSessions(), window_max=3).read_event(
            "s", 0, after=4, signal=SIGNAL
        )


def test_numbers_leave_as_javascript_writes_them(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write("s", ['{"type":"plan/mode","seq":0,"time":5.0,"data":{"a":4.0,"b":1e999}}'])
    (event,) = to_wire(store.reader().read_session("s", signal=SIGNAL))["events"]
    assert event == {"type": "plan/mode", "seq": 0, "time": 5, "data": {"a": 4, "b": None}}
    assert isinstance(event["data"]["a"], int)


def test_titles_are_read_once_an_id_in_order_of_first_mention(
    make_store: Callable[[], MadeStore],
) -> None:
    store = make_store()
    for name in ("a", "b"):
        store.write(name, [user(0)], createdAt=T0)
    results = store.reader().read_titles(["b", "x", "a", "b"], signal=SIGNAL)
    assert [result.session_id for result in results] == ["b", "x", "a"]
    assert [result.error is None for result in results] == [True, False, True]


def test_filters_may_have_very_many_values() -> None:
    many = [f"s{number}" for number in range(100_000)]
    clauses = parse_session_filters([{"kind": kind, "values": many} for kind in ("id", "cwd")])
    matches = session_predicate(clauses)
    headers = [SessionHeader(name, 0, False, 0, cwd=name) for name in many[-2000:]]
    records = [SessionRecord(header, live=False, persisted=True) for header in headers]
    # Four hundred million comparisons, if the values were looked through one by one.
    assert all(map(matches, records))

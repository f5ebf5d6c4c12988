"""A tool result may be replaced by one with other content; else there is no surface."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import (
    CORRUPT_SESSION,
    EVENT_NOT_FOUND,
    INVALID_SURFACE,
    SessionQueryError,
)
from made_stores import (
    MadeStore,
    Row,
    assistant,
    replace,
    step_start,
    tool_block,
    tool_call,
    tool_result,
    turn_start,
    user,
)

CALLED = [turn_start(0), step_start(1), assistant(2, tool_block()), tool_call(3)]
META = {"meta": {"n": 1, "text": "\ud800"}}
FAILED: Row = {"isError": True, "data": {"error": {"name": "E", "code": "C"}}}
UNFIT_REPLACEMENTS: dict[str, tuple[Row, Row]] = {
    "another call": ({}, {"call_id": "c2"}),
    "another id": ({}, {"id": "z"}),
    "another outcome": ({}, {"isError": True}),
    "more in the source": ({}, {"source": {"kind": "tool", "callId": "c1", "z": 1}}),
    "more in the message": ({}, {"z": 1}),
    "more in the payload": ({}, {"data": META}),
    "less in the payload": ({"data": META}, {}),
    "an error": ({"isError": True}, FAILED),
    "another error": (FAILED, {"isError": True, "data": {"error": {"name": "E", "code": "D"}}}),
    "another turn": ({}, {"data": {"turn": 2}}),
}


@pytest.mark.parametrize("name", UNFIT_REPLACEMENTS)
def test_a_result_replaced_by_more_than_content_has_no_surface(
    name: str, make_store: Callable[[], MadeStore]
) -> None:
    store = make_store()
    before, after = UNFIT_REPLACEMENTS[name]
    rows = [*CALLED, tool_result(4, **before)]
    again = {"id": "r4", **after}
    store.write("s", [*rows, tool_result(5, **again, surface=replace(4, 4), sources=[4])])
    assert_only_the_surface_is_invalid(store)
    store.write(
        "s",
        [
            *rows,
            tool_result(
                5, **before | {"id": "r4", "content": []}, surface=replace(4, 4), sources=[4]
            ),
        ],
    )
    assert len(store.load("s").events) == 8


@pytest.mark.parametrize(("start", "cited"), [(0, [0]), (4, [4, 5])])
def test_a_result_replaces_one_result_only(
    start: int, cited: list[int], make_store: Callable[[], MadeStore]
) -> None:
    store = make_store()
    called = [user(0), turn_start(1), step_start(2), assistant(3, tool_block())]
    rows = [*called, tool_call(4), tool_result(5), user(6)]
    if start:
        rows = [*CALLED, tool_result(4), user(5)]
    end = cited[-1]
    store.write(
        "s",
        [*rows, tool_result(len(rows), id="r4", surface=replace(start, end), sources=cited)],
    )
    assert_only_the_surface_is_invalid(store)


def assert_only_the_surface_is_invalid(store: MadeStore) -> None:
    reader, signal = store.reader(), AbortSignal()
    with pytest.raises(SessionQueryError) as caught:
        store.load("s")
    assert caught.value.code == INVALID_SURFACE
    for needs_it in (
        lambda: reader.list_events("s", signal=signal),
        lambda: reader.read_surface("s", signal=signal),
        lambda: reader.filter_events("s", [], signal=signal),
        lambda: reader.trace_event("s", 0, signal=signal),
        lambda: reader.read_session("s", signal=signal),
    ):
        with pytest.raises(SessionQueryError) as caught:
            needs_it()
        assert caught.value.code == INVALID_SURFACE
    with pytest.raises(SessionQueryError) as caught:
        reader.observe_session("s", signal=signal)
    assert caught.value.code == CORRUPT_SESSION
    with pytest.raises(SessionQueryError) as caught:
        reader.trace_event("s", 99, signal=signal)
    assert caught.value.code == EVENT_NOT_FOUND
    assert reader.read_event("s", 1, signal=signal).start_seq == 1
    assert reader.read_title_snapshot("s", signal=signal).title is None
    (problem,) = reader.list_unreadable(signal=signal)
    assert problem.code == INVALID_SURFACE

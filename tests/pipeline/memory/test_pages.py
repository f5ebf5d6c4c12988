"""Search pages: what the engine is asked, which hits may be shown, and what is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.pipeline.shared.errors import QUESTION_REQUIRED, SUBAGENT_SESSION, RequestError
from dsh_memory.sessionquery.errors import SESSION_NOT_FOUND, STALE_CURSOR, SessionQueryError
from dsh_memory.sessionquery.model.search import EventPage, SessionPage, UnreadableSession

pytestmark = pytest.mark.anyio
Open = Callable[..., MemoryWorkflow]


async def test_a_global_search_asks_for_one_native_page(engine: Any, open_workflow: Open) -> None:
    engine.page = SessionPage((), next_cursor="opaque-next")
    result = await open_workflow().page(
        {"query": "  data\n base\t ", "cursor": "cursor-1", "limit": 7}
    )
    assert engine.calls == [("search_sessions", "data base", [], None, 7, "cursor-1")]
    assert result.to_json() == {
        "source": "dsh",
        "query": "data base",
        "scope": "all",
        "results": [],
        "excluded_subagent_sessions": 0,
        "next_cursor": "opaque-next",
    }


async def test_a_directory_is_an_exact_native_filter(engine: Any, open_workflow: Open) -> None:
    result = await open_workflow().page({"query": "x", "cwd": " /a/b ", "limit": 2})
    filters = [{"kind": "cwd", "values": ["/a/b"]}]
    assert engine.calls == [("search_sessions", "x", filters, None, 2, None)]
    assert result.scope == "cwd"
    assert "next_cursor" not in result.to_json()


async def test_a_session_is_searched_by_its_events(
    engine: Any, open_workflow: Open, header: Any, match: Any
) -> None:
    fork = header("exact", parent_session="parent", is_seeded=True)
    engine.page = EventPage(fork, (match("exact"),), next_cursor="events-next")
    engine.headers["exact"] = fork
    result = await open_workflow().page(
        {"query": "x", "session_id": "exact", "limit": 3, "cursor": "events-current"}
    )
    assert engine.calls[0] == ("search_events", "exact", "x", None, 3, "events-current")
    assert result.to_json() == {
        "source": "dsh",
        "query": "x",
        "scope": "session",
        "results": [
            {
                "session_id": "exact",
                "cwd": None,
                "created_at": 123,
                "seq": 5,
                "type": "assistant/message",
                "time": 456,
                "surface": "current",
                "snippet": "database evidence",
                "snippet_truncated": False,
            }
        ],
        "excluded_subagent_sessions": 0,
        "next_cursor": "events-next",
    }


async def test_authoritative_headers_decide_and_are_shown(
    engine: Any, open_workflow: Open, header: Any, hit: Any
) -> None:
    engine.page = SessionPage(
        (
            hit("origin"),
            hit("depth"),
            hit("fork", header=header("fork", cwd="/indexed", delegation_depth=3), live=True),
        ),
        next_cursor="more",
    )
    engine.headers = {
        "origin": header("origin", origin="subagent"),
        "depth": header("depth", delegation_depth=2),
        "fork": header("fork", parent_session="p", is_seeded=True, cwd="/true", created_at=9),
    }
    result = await open_workflow().page({"query": "x"})
    assert [(item.session_id, item.cwd, item.created_at) for item in result.results] == [
        ("fork", "/true", 9)
    ]
    assert (result.results[0].live, result.results[0].persisted) == (True, True)
    assert result.excluded_subagent_sessions == 2
    assert result.next_cursor == "more"
    assert engine.calls[1:] == [("read_header", name) for name in ("origin", "depth", "fork")]


@pytest.mark.parametrize("mark", [{"origin": "subagent"}, {"delegation_depth": 1}])
@pytest.mark.parametrize("hits", [0, 1])
async def test_an_exact_subagent_session_is_refused_also_without_hits(
    engine: Any,
    open_workflow: Open,
    header: Any,
    match: Any,
    mark: dict[str, Any],
    hits: int,
) -> None:
    engine.page = EventPage(header("child"), (match("child"),) * hits)
    engine.headers["child"] = header("child", **mark)
    with pytest.raises(RequestError) as caught:
        await open_workflow().page({"query": "x", "session_id": "child"})
    assert caught.value.code == SUBAGENT_SESSION


async def test_a_read_of_a_subagent_session_is_refused(
    open_workflow: Open, window_of: Any, said: Any, header: Any
) -> None:
    window_of(said(5, "secret"), session=header("child", origin="subagent"))
    with pytest.raises(RequestError) as caught:
        await open_workflow().read_value({"session_id": "child", "seq": 5})
    assert caught.value.code == SUBAGENT_SESSION
    assert "secret" not in str(caught.value.to_json())


async def test_snippets_are_cut_at_500_units_between_pairs(
    page_of: Any, open_workflow: Open, hit: Any
) -> None:
    page_of(hit("a", "x" * 499 + "😀tail"), hit("b", "y" * 500), hit("c", "lone \ud800"))
    result = await open_workflow().page({"query": "x"})
    assert [(item.snippet, item.snippet_truncated) for item in result.results] == [
        ("x" * 499, True),
        ("y" * 500, False),
        ("lone \ufffd", False),
    ]


async def test_errors_of_the_engine_pass_unchanged_and_are_not_retried(
    engine: Any, open_workflow: Open, page_of: Any, hit: Any
) -> None:
    stale = SessionQueryError("stale", code=STALE_CURSOR)
    engine.page = stale
    with pytest.raises(SessionQueryError) as caught:
        await open_workflow().page({"query": "x", "cursor": "old"})
    assert caught.value is stale
    assert engine.names == ["search_sessions"]
    page_of(hit("there"), hit("gone"), hit("never"))
    engine.headers["gone"] = SessionQueryError("gone", code=SESSION_NOT_FOUND)
    with pytest.raises(SessionQueryError) as caught:
        await open_workflow().page({"query": "x"})
    assert caught.value.code == SESSION_NOT_FOUND
    assert engine.calls[-1] == ("read_header", "gone")


async def test_what_the_engine_left_out_is_reported(engine: Any, open_workflow: Open) -> None:
    engine.page = SessionPage(
        (),
        unreadable_sessions=(
            UnreadableSession("p/s/session.v4.jsonl", "SESSION_QUERY_CORRUPT_SESSION", "torn", "s"),
            UnreadableSession("p/t/session.v4.jsonl", "SESSION_QUERY_CORRUPT_SESSION", "bad"),
        ),
        diagnostics=("in memory only",),
    )
    value = (await open_workflow().page({"query": "x"})).to_json()
    assert value["diagnostics"] == ["in memory only"]
    assert [sorted(item) for item in value["unreadable_sessions"]] == [
        ["code", "path", "reason", "session_id"],
        ["code", "path", "reason"],
    ]


async def test_the_question_is_checked_before_any_work(
    engine: Any, service: Any, open_workflow: Open
) -> None:
    workflow = open_workflow(jev={"enabled": True, "context_window": 8192})
    for review in (False, True):
        with pytest.raises(RequestError) as caught:
            await workflow.page({"query": "x"}, review=review)
        assert caught.value.code == QUESTION_REQUIRED
    assert engine.calls == []
    assert service.asked == 0


async def test_a_review_without_jev_is_refused(engine: Any, open_workflow: Open) -> None:
    with pytest.raises(RequestError) as caught:
        await open_workflow().page({"query": "x", "question": "Why?"}, review=True)
    assert caught.value.code == "REQUEST_JEV_DISABLED"
    assert engine.calls == []


async def test_without_jev_the_question_is_allowed_and_changes_nothing(
    page_of: Any, open_workflow: Open, hit: Any
) -> None:
    page_of(hit("a"))
    plain = await open_workflow().page({"query": "x"})
    asked = await open_workflow().page({"query": "x", "question": "Why?"})
    assert plain == asked


async def test_a_window_reads_target_first_and_keeps_every_place(
    engine: Any, open_workflow: Open, window_of: Any, said: Any, header: Any
) -> None:
    silent = {"seq": 4, "type": "turn/start", "time": 1, "data": {"turn": 1}}
    window_of(
        said(3, "B" * 70),
        silent,
        said(5, "T" * 80),
        said(6, "A" * 70),
        session=header("fork", cwd="/w"),
        inherited=4,
    )
    result = await open_workflow().read_value(
        {"session_id": " fork ", "seq": 5, "before": 1, "after": 2, "max_chars": 100}
    )
    assert engine.calls == [("read_event", "fork", 5, 1, 2)]
    assert result.to_json() | {"events": None} == {
        "source": "dsh",
        "session_id": "fork",
        "cwd": "/w",
        "created_at": 123,
        "target_seq": 5,
        "start_seq": 3,
        "end_seq": 6,
        "inherited_event_count": 4,
        "events": None,
        "truncated": True,
    }
    assert [(event.seq, len(event.text), event.text_truncated) for event in result.events] == [
        (3, 0, True),
        (4, 0, False),
        (5, 80, False),
        (6, 20, True),
    ]

"""Document 002's five tools: what a caller may see, and how its questions are answered."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from mcp import Client

pytestmark = pytest.mark.anyio

TIDEPOOL = "/home/mira/code/tidepool"
OWN = "tp-0001-ingest-kickoff"
CALLS = {
    "session_search": {"query": "database"},
    "session_event_search": {"query": "database", "session_id": OWN},
    "session_trace": {"session_id": OWN},
    "session_event_trace": {"session_id": OWN, "seq": 3},
    "session_event_read": {"session_id": OWN, "seq": 3},
}


async def called(server: Any, name: str, **arguments: Any) -> Any:
    async with Client(server.sdk) as client:
        return await client.call_tool(name, arguments)


async def value(server: Any, name: str, **arguments: Any) -> Any:
    result = await called(server, name, **arguments)
    assert not result.is_error, result.content[0].text
    assert result.content[0].text.startswith("What follows was recorded")
    return result.structured_content


async def code(server: Any, name: str, **arguments: Any) -> str:
    result = await called(server, name, **arguments)
    assert result.is_error
    text: str = result.content[0].text
    assert len(text) < 500
    return text.split(":")[0]


def ids(answer: Any) -> list[str]:
    return [hit["session_id"] for hit in answer["results"]]


async def test_search_stays_in_the_callers_directory(place: Any) -> None:
    found = ids(
        await value(place.server("query", cwd=TIDEPOOL), "session_search", query="database")
    )
    assert "tp-0002-storage-decision" in found
    assert "6f0d1f4e-52c3-4a5e-9a0e-0f4b7a3f6c21" in found, "a subagent is a session here"
    assert not {"site-0001-bird-page", "notes-0001-reading-list"} & set(found)
    for near in (TIDEPOOL + "/", TIDEPOOL + "-site", "/home/mira/code"):
        server = place.server("query", cwd=near)
        assert "tp-0002-storage-decision" not in ids(
            await value(server, "session_search", query="database")
        )


async def test_the_callers_own_session_is_left_out_of_the_search(place: Any) -> None:
    server = place.server("query", cwd=TIDEPOOL, session_id=OWN)
    assert OWN not in ids(await value(server, "session_search", query="database"))
    assert ids(await value(server, "session_search", query="database", session_ids=[OWN])) == []


async def test_without_a_directory_only_the_own_session_is_visible(place: Any) -> None:
    server = place.server("query", session_id=OWN)
    assert ids(await value(server, "session_search", query="database")) == []
    assert (await value(server, "session_trace"))["session"]["session_id"] == OWN
    for name in list(CALLS)[1:]:
        arguments = {**CALLS[name], "session_id": "tp-0002-storage-decision"}
        assert await code(server, name, **arguments) == "REQUEST_OUTSIDE_WORKSPACE"


async def test_an_unknown_caller_sees_nothing(place: Any) -> None:
    for name, arguments in CALLS.items():
        assert await code(place.server("query"), name, **arguments) == "REQUEST_CALLER_REQUIRED"


async def test_unknown_and_foreign_sessions_are_refused_alike(place: Any) -> None:
    server = place.server("query", cwd=TIDEPOOL)
    for session_id in ("site-0001-bird-page", "scratch-0001", "no-such-session"):
        for name in list(CALLS)[1:]:
            refused = await called(server, name, **{**CALLS[name], "session_id": session_id})
            told = refused.content[0].text.replace(session_id, "ID")
            assert told.startswith("REQUEST_OUTSIDE_WORKSPACE: Session 'ID' is unknown or outside")


async def test_an_omitted_session_is_the_callers_own(place: Any) -> None:
    server = place.server("query", cwd=TIDEPOOL, session_id=OWN)
    read = await value(server, "session_event_read", seq=3, session_id=None)
    assert read["session"]["session_id"] == OWN
    unknown = place.server("query", cwd=TIDEPOOL)
    assert await code(unknown, "session_event_read", seq=3) == "REQUEST_INVALID"


async def test_foreign_parents_match_nothing_and_are_not_told_from_unknown_ones(
    place: Any,
) -> None:
    server = place.server("query", cwd=TIDEPOOL)

    async def of(*parents: str, **more: Any) -> list[str]:
        answer = await value(
            server, "session_search", query="database", parent_session_ids=list(parents), **more
        )
        return ids(answer)

    mine = "tp-0002-storage-decision"
    assert await of("site-0001-bird-page") == await of("no-such-session") == []
    assert await of(mine, mine, "site-0001-bird-page") == ["tp-0003-what-if-duckdb"]
    roots = await of("no-such-session", include_root_sessions=True)
    assert mine in roots
    assert "tp-0003-what-if-duckdb" not in roots


async def test_filters_narrow_the_search(place: Any) -> None:
    server = place.server("query", cwd=TIDEPOOL)

    async def found(**filters: Any) -> list[str]:
        return ids(await value(server, "session_search", query="database", **filters))

    assert await found(session_ids=[OWN]) == [OWN]
    assert await found(created_at_to="2026-09-02T00:00:00Z") == [OWN]
    assert OWN not in await found(created_at_from="2026-09-02T02:00:00+02:00")
    assert await found(event_types=["tool/result"]) == []
    assert await found(availability=["live"]) == []
    assert await found(event_seq_from=4, session_ids=[OWN]) == []
    assert await found(event_surfaces=["current"], event_time_to="2026-09-01T08:06:43Z") == []
    events = await value(
        server, "session_event_search", query="database", session_id=OWN, seq_to=3, seq_from=3
    )
    assert [hit["seq"] for hit in events["results"]] == [3]


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("session_search", {"query": "x", "cursor": "c"}, "'cursor'"),
        ("session_search", {"query": "x", "limit": 5}, "'limit'"),
        ("session_search", {"query": "x", "session_ids": []}, "session_ids must have 1 to 100"),
        ("session_search", {"query": "x", "session_ids": "a"}, "must be a list"),
        ("session_search", {"query": "x", "created_at_from": "2026-01-01"}, "ISO 8601"),
        ("session_search", {"query": "x", "created_at_from": "2026-01-01T00:00:00"}, "ISO 8601"),
        (
            "session_search",
            {"query": "x", "event_seq_from": 2, "event_seq_to": 1},
            "event_seq_from",
        ),
        ("session_search", {"query": "x", "event_surfaces": ["gone"]}, "event_surfaces"),
        ("session_search", {"query": "x", "include_root_sessions": 1}, "true or false"),
        ("session_event_search", {"query": " ", "session_id": OWN}, "query must not be blank"),
        ("session_event_read", {"session_id": OWN, "seq": -1}, "seq must be a whole number"),
        ("session_event_read", {"session_id": OWN, "seq": 0, "before": 51}, "from 0 to 50"),
        ("session_event_trace", {"session_id": OWN}, "seq is required"),
    ],
)
async def test_wrong_arguments_are_refused_by_name(
    place: Any, name: str, arguments: dict[str, Any], told: str
) -> None:
    result = await called(place.server("query", cwd=TIDEPOOL), name, **arguments)
    assert result.is_error
    assert result.content[0].text.startswith("REQUEST_INVALID: ")
    assert told in result.content[0].text


async def test_a_lineage_ends_where_the_caller_may_not_look(place: Any, write_session: Any) -> None:
    write_session(place.home, "far-parent", "hidden text", cwd="/w/far")
    write_session(place.home, "near-child", "x", cwd="/w/near", parentSession="far-parent")
    write_session(place.home, "near-grandchild", "x", cwd="/w/near", parentSession="near-child")
    write_session(place.home, "far-grandchild", "x", cwd="/w/far", parentSession="near-child")
    server = place.server("query", cwd="/w/near")
    answer = await called(server, "session_trace", session_id="near-child")
    trace = answer.structured_content
    assert trace["ancestors"] == []
    assert trace["complete"] is False
    assert [node["session_id"] for node in trace["descendants"]] == ["near-grandchild"]
    assert "far-" not in answer.content[0].text + json.dumps(trace)
    deepest = await value(server, "session_trace", session_id="near-grandchild")
    assert [node["session_id"] for node in deepest["ancestors"]] == ["near-child"]
    assert deepest["complete"] is False


async def test_an_event_is_read_whole_with_its_neighbours_in_short(
    place: Any, write_session: Any
) -> None:
    long = "word " * 400
    write_session(place.home, "long", long, cwd="/w/one")
    server = place.server("query", cwd="/w/one")
    read = await value(server, "session_event_read", session_id="long", seq=2)
    assert read["target"]["data"]["content"][0]["text"] == long
    assert (read["before"], read["after"]) == ([], [])
    beside = await value(server, "session_event_read", session_id="long", seq=3, before=2, after=1)
    assert [event["seq"] for event in beside["before"]] == [1, 2]
    assert [event["seq"] for event in beside["after"]] == [4]
    assert len(beside["before"][1]["text"]) == 500
    assert beside["before"][1]["text_truncated"] is True


async def test_an_event_trace_tells_replacements(place: Any) -> None:
    server = place.server("query", cwd=TIDEPOOL)
    old = await value(server, "session_event_trace", session_id="tp-0005-migration-day", seq=5)
    new = old["replaced_by"]
    assert old["replacement_chain"] == [new]
    checkpoint = await value(
        server, "session_event_trace", session_id="tp-0005-migration-day", seq=new
    )
    assert 5 in checkpoint["replaced_event_seqs"]
    assert 5 in checkpoint["source_event_seqs"]


async def test_the_own_search_leaves_out_the_step_that_asks(place: Any, write_session: Any) -> None:
    write_session(place.home, "own", "needle in the first step", cwd="/w/one", asking="needle")
    own = place.server("query", cwd="/w/one", session_id="own")
    found = await value(own, "session_event_search", query="needle")
    assert [hit["type"] for hit in found["results"]] == ["user/message"]
    other = place.server("query", cwd="/w/one")
    found = await value(other, "session_event_search", query="needle", session_id="own")
    assert {hit["type"] for hit in found["results"]} == {"user/message", "assistant/message"}


async def test_a_search_collects_at_most_100_hits_over_the_pages(
    place: Any, write_session: Any
) -> None:
    for number in range(105):
        write_session(place.home, f"many-{number:03}", "needle", cwd="/w/many")
    place.config.write_text("[index]\nmax_limit = 30\n", "utf-8")
    answer = await value(place.server("query", cwd="/w/many"), "session_search", query="needle")
    assert len(answer["results"]) == len(set(ids(answer))) == 100
    assert answer["truncated"] is True
    fewer = await value(
        place.server("query", cwd="/w/many", session_id="many-000"),
        "session_search",
        query="needle",
        session_ids=[f"many-{number:03}" for number in range(60)],
    )
    assert len(fewer["results"]) == 59
    assert fewer["truncated"] is False


async def test_what_reaches_the_model_is_clean(place: Any, write_session: Any) -> None:
    hostile = "needle \x1b[31mred\x9b \u202ereversed \ud800 end"
    write_session(place.home, "hostile", hostile, cwd="/w/one")
    server = place.server("query", cwd="/w/one")
    for name, arguments in (
        ("session_search", {"query": "needle"}),
        ("session_event_search", {"query": "needle", "session_id": "hostile"}),
        ("session_event_read", {"session_id": "hostile", "seq": 2}),
    ):
        result = await called(server, name, **arguments)
        both = result.content[0].text + json.dumps(result.structured_content, ensure_ascii=False)
        assert not {"\x1b", "\x9b", "\u202e", "\ud800"} & set(both)
        assert "needle" in both


async def test_failures_do_not_tell_where_the_store_is(place: Any, write_session: Any) -> None:
    log = write_session(place.home, "broken", "x", cwd="/w/one")
    log.write_text(log.read_text("utf-8").replace('"turn/start"', '"turn/begin"'), "utf-8")
    result = await called(
        place.server("query", cwd="/w/one"), "session_event_read", session_id="broken", seq=0
    )
    assert result.is_error
    assert str(place.home) not in result.content[0].text


async def test_reads_run_side_by_side_and_searches_alone(place: Any) -> None:
    async with Client(place.server("query", cwd=TIDEPOOL).sdk) as client:
        results: list[Any] = []

        async def call(name: str) -> None:
            results.append(await client.call_tool(name, CALLS[name]))

        async with anyio.create_task_group() as tasks:
            for name in [*CALLS, *CALLS]:
                tasks.start_soon(call, name)
    assert len(results) == 10
    assert not any(result.is_error for result in results)

"""Document 004's tool: scope, pages, hints, and the literal scan that helps out."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest
from dsh_memory.pipeline.assembly import open_memory
from dsh_memory.pipeline.recall.service import Recall
from dsh_memory.pipeline.shared.workspace_access import Caller
from dsh_memory.sessionquery.errors import SessionQueryError
from mcp import Client

pytestmark = pytest.mark.anyio

TIDEPOOL = "/home/mira/code/tidepool"
DAY = 86_400_000


async def called(server: Any, **arguments: Any) -> Any:
    async with Client(server.sdk) as client:
        return await client.call_tool("recall", arguments)


async def value(server: Any, **arguments: Any) -> Any:
    result = await called(server, **arguments)
    assert not result.is_error, result.content[0].text
    assert result.content[0].text.startswith("What follows was recorded")
    return result.structured_content


def ids(answer: Any) -> list[str]:
    return [hit["session_id"] for hit in answer["results"]]


async def refused(server: Any, **arguments: Any) -> str:
    result = await called(server, **arguments)
    assert result.is_error
    text: str = result.content[0].text
    assert len(text) < 500
    assert len(text.split("\n", 1)[1]) > 10, "a failure comes with a hint"
    return text


async def test_the_project_is_the_default_scope(place: Any) -> None:
    server = place.server("recall", cwd=TIDEPOOL)
    project = await value(server, query="database")
    assert project["scope"] == "project"
    assert all(hit["cwd"] == TIDEPOOL for hit in project["results"])
    everything = await value(server, query="database", all_projects=True, limit=10)
    assert everything["scope"] == "all"
    assert "notes-0001-reading-list" in ids(everything)
    one = await value(server, query="database", session_id="tp-0001-ingest-kickoff")
    assert one["scope"] == "session"
    assert set(ids(one)) == {"tp-0001-ingest-kickoff"}


async def test_hits_have_titles_and_dates(place: Any) -> None:
    answer = await called(place.server("recall", cwd=TIDEPOOL), query="PgBouncer")
    [hit] = answer.structured_content["results"]
    assert hit["title"].startswith("The ingest workers run out of connections")
    assert hit["title"] in answer.content[0].text
    assert "2026-09-06T08:06:40Z" in answer.content[0].text


async def test_other_projects_need_to_be_allowed_and_asked_for(place: Any) -> None:
    server = place.server("recall", cwd=TIDEPOOL)
    other = {"query": "database", "session_id": "site-0001-bird-page"}
    assert "REQUEST_OUTSIDE_WORKSPACE" in await refused(server, **other)
    assert ids(await value(server, **other, all_projects=True)) == ["site-0001-bird-page"]
    place.config.write_text("[recall]\nallow_all_projects = false\n", "utf-8")
    assert "recall.allow_all_projects" in await refused(server, query="x", all_projects=True)
    assert "not allowed" in await refused(server, **other, all_projects=True)
    assert "REQUEST_OUTSIDE_WORKSPACE" in await refused(server, **other)


async def test_without_a_directory_only_the_own_session_is_searched(place: Any) -> None:
    own = "tp-0001-ingest-kickoff"
    server = place.server("recall", session_id=own)
    assert ids(await value(server, query="database")) == [own]
    other = {"query": "database", "session_id": "tp-0002-storage-decision"}
    assert "REQUEST_OUTSIDE_WORKSPACE" in await refused(server, **other)
    assert "REQUEST_CALLER_REQUIRED" in await refused(place.server("recall"), query="database")


async def test_limits_follow_the_configuration(place: Any, write_session: Any) -> None:
    for number in range(12):
        write_session(place.home, f"many-{number:02}", "needle", cwd="/w/many")
    server = place.server("recall", cwd="/w/many")
    assert len(ids(await value(server, query="needle"))) == 5
    assert len(ids(await value(server, query="needle", limit=10))) == 10
    assert "from 1 to 10" in await refused(server, query="needle", limit=11)
    place.config.write_text("[recall]\ndefault_limit = 2\nmax_limit = 25\n", "utf-8")
    assert len(ids(await value(server, query="needle", limit=None))) == 2
    assert len(ids(await value(server, query="needle", limit=25))) == 12


@pytest.mark.parametrize("since_days", [None, 30])
async def test_pages_follow_each_other(
    place: Any, write_session: Any, since_days: int | None
) -> None:
    now = int(time.time() * 1000)
    for number in range(7):
        write_session(place.home, f"many-{number}", "needle", cwd="/w/many", time=now - number)
    server = place.server("recall", cwd="/w/many")
    arguments: dict[str, Any] = {"query": "needle", "limit": 3, "since_days": since_days}
    seen: list[str] = []
    for _ in range(3):
        page = await value(server, **arguments)
        seen += ids(page)
        arguments["cursor"] = page.get("next_cursor")
    assert arguments["cursor"] is None
    assert sorted(seen) == [f"many-{number}" for number in range(7)]
    if since_days is not None:
        first = await value(server, query="needle", limit=3, since_days=since_days)
        plain = {"query": "needle", "limit": 3, "cursor": first["next_cursor"]}
        assert "SESSION_QUERY_INVALID_CURSOR" in await refused(server, **plain)


async def test_since_days_leaves_out_older_events(place: Any, write_session: Any) -> None:
    now = int(time.time() * 1000)
    write_session(place.home, "new", "needle 简历模板", cwd="/w/age", time=now - DAY)
    write_session(place.home, "old", "needle 简历模板", cwd="/w/age", time=now - 9 * DAY)
    server = place.server("recall", cwd="/w/age")
    assert sorted(ids(await value(server, query="needle"))) == ["new", "old"]
    assert ids(await value(server, query="needle", since_days=7)) == ["new"]
    assert ids(await value(server, query="模板", since_days=7)) == ["new"]
    assert "since_days must be a whole number" in await refused(
        server, query="needle", since_days=0
    )


async def test_a_part_of_a_chinese_run_is_found_by_the_scan(place: Any) -> None:
    server = place.server("recall", cwd=TIDEPOOL)
    answer = await value(server, query="字体")
    assert answer["matched_by"] == "substring"
    assert ids(answer) == ["tp-0007-zh-report"]
    assert "literal scan" in answer["hint"]
    whole = await value(server, query="正文 10")
    assert whole["matched_by"] == "index"
    assert "hint" not in whole


async def test_every_term_must_occur_in_the_same_event(place: Any, write_session: Any) -> None:
    write_session(place.home, "cv", "请把简历模板发给我", cwd="/w/zh")
    write_session(place.home, "half", "只有简历", cwd="/w/zh", asking="只有模板")
    server = place.server("recall", cwd="/w/zh")
    assert ids(await value(server, query="简历 模板")) == ["cv"]
    nothing = await value(server, query="简历 字体")
    assert ids(nothing) == []
    assert nothing["matched_by"] == "index"
    assert "Neither the index nor a literal scan" in nothing["hint"]
    assert "all_projects" in nothing["hint"]


async def test_the_scan_can_be_switched_off_and_explained_or_not(place: Any) -> None:
    server = place.server("recall", cwd=TIDEPOOL)
    place.config.write_text("[recall]\ncjk_fallback = false\n", "utf-8")
    explained = await value(server, query="字体")
    assert ids(explained) == []
    assert "recall.cjk_fallback" in explained["hint"]
    place.config.write_text("[recall]\ncjk_fallback = false\ncjk_hint = false\n", "utf-8")
    assert "hint" not in await value(server, query="字体")


async def test_the_scan_reads_no_more_sessions_than_allowed(place: Any, write_session: Any) -> None:
    for number in range(6):
        text = "旧的模板文件" if number == 0 else "别的东西"
        write_session(place.home, f"s{number}", text, cwd="/w/zh", time=1_790_000_000_000 + number)
    server = place.server("recall", cwd="/w/zh")
    place.config.write_text("[recall]\ncjk_fallback_scan_max = 3\n", "utf-8")
    capped = await value(server, query="模板")
    assert ids(capped) == []
    assert "newest 3 of 6 sessions" in capped["hint"]
    place.config.write_text("[recall]\ncjk_fallback_scan_max = 6\n", "utf-8")
    assert ids(await value(server, query="模板")) == ["s0"]


async def test_other_queries_are_never_scanned(place: Any, write_session: Any) -> None:
    write_session(place.home, "braid", "BRAID", cwd="/w/en")
    answer = await value(place.server("recall", cwd="/w/en"), query="AI")
    assert ids(answer) == []
    assert answer["hint"].startswith("No match. Words are matched whole")


async def test_failures_come_with_the_right_hint(place: Any, write_session: Any) -> None:
    server = place.server("recall", cwd="/w/many")
    for number in range(3):
        write_session(place.home, f"many-{number}", "needle", cwd="/w/many")
    first = await value(server, query="needle", limit=1)
    write_session(place.home, "older", "needle", cwd="/w/many", time=1_700_000_000_000)
    stale = await refused(server, query="needle", limit=1, cursor=first["next_cursor"])
    assert stale.startswith("SESSION_QUERY_STALE_CURSOR")
    assert "without cursor" in stale
    unknown = await refused(server, query="needle", session_id="nope", all_projects=True)
    assert unknown.startswith("SESSION_QUERY_SESSION_NOT_FOUND")
    assert "without session_id first" in unknown
    place.config.write_text('[index]\nopen_at = "never"\n', "utf-8")
    disabled = await refused(server, query="needle")
    assert disabled.startswith("SESSION_QUERY_SEARCH_DISABLED")
    assert "index.open_at" in disabled
    assert "index.path" in disabled
    assert "'source'" in await refused(server, query="needle", source="x")


async def test_it_gives_up_after_its_time(place: Any) -> None:
    async with open_memory(place.load()) as memory:
        engine: Any = memory.engine
        real = engine.search_sessions
        left = anyio.Event()

        async def slow(*arguments: Any, **options: Any) -> Any:
            try:
                await anyio.sleep_forever()
            finally:
                left.set()

        engine.search_sessions = slow
        recall = Recall(
            engine, memory.settings, Caller(cwd=TIDEPOOL), home=str(place.home), seconds=0.05
        )
        with pytest.raises(SessionQueryError) as caught:
            await recall.recall({"query": "database"})
        assert caught.value.code == "SESSION_QUERY_TIMEOUT"
        assert caught.value.retryable
        assert caught.value.hint is not None
        assert left.is_set()
        engine.search_sessions = real
        recall = Recall(engine, memory.settings, Caller(cwd=TIDEPOOL), home=str(place.home))
        assert (await recall.recall({"query": "database"})).results


def write_echo(place: Any, text: str) -> None:
    """A session in which our own tool was asked for `text` and answered with it."""
    call = {"callId": "c1", "name": "mcp__memory__recall", "arguments": '{"query": "' + text + '"}'}
    block = {"type": "tool-call", "id": "c1", "name": call["name"], "arguments": call["arguments"]}
    said = {"role": "assistant", "id": "m1", "content": [block]}
    said |= {"source": {"kind": "model", "provider": "p", "model": "m"}}
    answer = {"role": "tool", "id": "m2", "toolCallId": "c1", "isError": False}
    answer |= {"source": {"kind": "tool", "callId": "c1"}}
    answer |= {"content": [{"type": "text", "text": f"Recall: {text}"}]}
    step = {"turn": 1, "step": 1}
    rows: list[dict[str, Any]] = [
        {"type": "turn/start", "data": {"turn": 1}},
        {"type": "step/start", "data": step},
        {"type": "assistant/message", "data": {**step, "message": said}, "surfaceOp": "append"},
        {"type": "tool/call", "data": {**step, **call}},
        {"type": "tool/result", "data": {**step, "message": answer}, "surfaceOp": "append"},
        {"type": "step/end", "data": step},
        {"type": "turn/end", "data": {"turn": 1, "reason": {"kind": "completed"}}},
    ]
    first = {"type": "session", "version": 4, "id": "asked", "createdAt": 1_795_000_000_000}
    first |= {"cwd": "/w/zh", "isSeeded": False, "delegationDepth": 0}
    lines = [first] + [{**row, "seq": seq, "time": 1000 + seq} for seq, row in enumerate(rows)]
    folder = place.home / "sessions" / "--w-zh--" / "asked"
    folder.mkdir(parents=True)
    log = folder / "session.v4.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


@pytest.mark.parametrize("query", ["字体", "needle"])
async def test_own_answers_are_left_out_unless_wanted(
    place: Any, write_session: Any, query: str
) -> None:
    write_session(place.home, "said", "这里说明字体的选择 needle", cwd="/w/zh")
    write_echo(place, query)
    server = place.server("recall", cwd="/w/zh")
    without = await value(server, query=query)
    assert ids(without) == ["said"]
    place.config.write_text("[recall]\nexclude_echoes = false\n", "utf-8")
    everything = await value(server, query=query)
    echoes = {hit["session_id"]: hit.get("echo", False) for hit in everything["results"]}
    assert echoes["asked"] is True
    assert "excluded_echoes" not in everything


async def test_sessions_that_cannot_be_read_are_named(place: Any, write_session: Any) -> None:
    write_session(place.home, "good", "needle", cwd="/w/one")
    log = write_session(place.home, "broken", "needle", cwd="/w/one")
    log.write_text(log.read_text("utf-8").replace('"turn/start"', '"turn/begin"'), "utf-8")
    server = place.server("recall", "query", cwd="/w/one")
    assert (await refused(server, query="needle")).startswith("SESSION_QUERY_PERSISTENCE_FAILED")
    place.config.write_text('[store]\nunreadable = "skip"\n', "utf-8")
    async with Client(server.sdk) as client:
        for name in ("recall", "session_search"):
            result = await client.call_tool(name, {"query": "needle"})
            assert ids(result.structured_content) == ["good"]
            [left_out] = result.structured_content["unreadable_sessions"]
            assert left_out["session_id"] == "broken"
            assert "Unreadable session left out: " in result.content[0].text

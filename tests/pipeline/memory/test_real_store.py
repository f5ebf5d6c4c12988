"""The workflow over the real engine and small hand-written stores."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.pipeline.assembly import engine_options, open_memory
from dsh_memory.pipeline.jsonl import answer_lines
from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.pipeline.shared.dsh_home import dsh_home
from dsh_memory.pipeline.shared.errors import SUBAGENT_SESSION, RequestError
from dsh_memory.runtime.config.layers import load
from dsh_memory.runtime.config.settings import Settings
from dsh_memory.sessionquery.errors import PERSISTENCE_FAILED, SessionQueryError
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

pytestmark = pytest.mark.anyio
Open = Callable[..., AbstractAsyncContextManager[MemoryWorkflow]]


@pytest.fixture
def memory(plain_home: Any, tmp_path: Path) -> Open:
    """Open the assembled memory; keyword arguments are settings with ``__`` for the dot."""

    @asynccontextmanager
    async def open_it(**values: Any) -> AsyncIterator[MemoryWorkflow]:
        overrides = [
            f"store.home={plain_home.path}",
            f"index.path={tmp_path / 'index.sqlite3'}",
            *(f"{name.replace('__', '.')}={value}" for name, value in values.items()),
        ]
        loaded = load(
            config_path=tmp_path / "none.toml",
            site_path=tmp_path / "none-either.toml",
            overrides=overrides,
            environ={},
        )
        async with open_memory(loaded) as opened:
            yield opened

    return open_it


async def test_subagents_are_left_out_by_their_own_header(plain_home: Any, memory: Open) -> None:
    plain_home.add("main", plain_home.user("zebra one"))
    plain_home.add("spawned", plain_home.user("zebra two"), origin="subagent", delegationDepth=1)
    # The index keeps no origin, and this header has no depth that would tell.
    plain_home.add("sneaky", plain_home.user("zebra three"), origin="subagent")
    async with memory() as opened:
        result = await opened.page({"query": "zebra"})
        assert [hit.session_id for hit in result.results] == ["main"]
        assert result.excluded_subagent_sessions == 2
        for session_id in ("spawned", "sneaky"):
            for query in ("zebra", "nothing-like-this"):
                with pytest.raises(RequestError) as caught:
                    await opened.page({"query": query, "session_id": session_id})
                assert caught.value.code == SUBAGENT_SESSION
            with pytest.raises(RequestError) as caught:
                await opened.read_value({"session_id": session_id, "seq": 0})
            assert caught.value.code == SUBAGENT_SESSION


async def test_short_pages_keep_the_native_cursor(plain_home: Any, memory: Open) -> None:
    for number in range(6):
        extra = {"origin": "subagent", "delegationDepth": 1} if number % 2 else {}
        plain_home.add(f"s{number}", plain_home.user("zebra"), **extra)
    seen, excluded, cursor = [], 0, None
    async with memory() as opened:
        while True:
            page = await opened.page({"query": "zebra", "limit": 2, "cursor": cursor})
            assert len(page.results) == 1
            seen += [hit.session_id for hit in page.results]
            excluded += page.excluded_subagent_sessions
            cursor = page.next_cursor
            if cursor is None:
                break
    assert sorted(seen) == ["s0", "s2", "s4"]
    assert excluded == 3


async def test_our_own_calls_and_answers_in_the_history_are_echoes(
    plain_home: Any, memory: Open
) -> None:
    tool = "mcp__memory__recall_memory"
    plain_home.add("asked", *plain_home.call(tool, '{"query":"zebra"}', "zebra was found"))
    plain_home.add("other", *plain_home.call("bash", '{"command":"zebra"}', "zebra"))
    plain_home.add("said", plain_home.user("a zebra"))
    async with memory() as opened:
        page = await opened.page({"query": "zebra"})
        assert {hit.session_id: hit.echo for hit in page.results} == {
            "asked": True,
            "other": None,
            "said": None,
        }
        events = await opened.page({"query": "zebra", "session_id": "asked"})
        assert sorted((hit.type, hit.echo) for hit in events.results) == [
            ("assistant/message", True),
            ("tool/call", True),
            ("tool/result", True),
        ]
    async with memory(search__exclude_echoes="true") as opened:
        page = await opened.page({"query": "zebra"})
        assert sorted(hit.session_id for hit in page.results) == ["other", "said"]
        assert page.excluded_echoes == 1
        events = await opened.page({"query": "zebra", "session_id": "asked"})
        assert (events.results, events.excluded_echoes) == ((), 3)


async def test_unreadable_sessions_fail_a_search_or_are_named(
    plain_home: Any, memory: Open
) -> None:
    plain_home.add("good", plain_home.user("zebra"))
    log = plain_home.add("bad", plain_home.user("zebra"))
    log.write_text(log.read_text().replace('"surfaceOp": "append"', '"ignorable": true'))
    async with memory() as opened:
        with pytest.raises(SessionQueryError) as caught:
            await opened.page({"query": "zebra"})
        assert caught.value.code == PERSISTENCE_FAILED
        assert "store.unreadable skip" in (caught.value.hint or "")
    async with memory(store__unreadable="skip") as opened:
        page = await opened.page({"query": "zebra"})
        assert [hit.session_id for hit in page.results] == ["good"]
        (unreadable,) = page.unreadable_sessions or ()
        assert (unreadable.session_id, bool(unreadable.reason)) == ("bad", True)


async def test_long_snippets_are_cut_at_500_units(plain_home: Any, memory: Open) -> None:
    plain_home.add("long", plain_home.user("zebra " + "😀" * 3000))
    async with memory(index__snippet_chars=2000) as opened:
        (hit,) = (await opened.page({"query": "zebra"})).results
    assert hit.snippet == "zebra " + "😀" * 247
    assert hit.snippet_truncated


def _relevance(request: Request) -> Response:
    body = json.loads(request.get_data())
    answers = {
        name: {"type": "noul", "noul": 0.9 if "chosen" in json.dumps(question) else 0.1}
        for name, question in body["questions"].items()
    }
    value = {"model": body["model"], "answers": answers, "usage": {"input_tokens": 5}}
    return Response(json.dumps(value), content_type="application/json")


async def test_the_whole_main_job(
    plain_home: Any, memory: Open, httpserver: HTTPServer, tmp_path: Path
) -> None:
    httpserver.expect_request("/v1/systemone").respond_with_handler(_relevance)
    for number in range(5):
        word = "chosen" if number in (1, 3) else "mentioned"
        plain_home.add(f"s{number}", plain_home.user(f"zebra {word} in session {number}"))
    plain_home.add("child", plain_home.user("zebra chosen"), origin="subagent")
    vault = tmp_path / "vault"
    vault.mkdir()
    values = {
        "jev__enabled": "true",
        "jev__context_window": 4096,
        "jev__base_url": httpserver.url_for("").rstrip("/").replace("localhost", "127.0.0.1"),
        "obsidian__enabled": "true",
        "obsidian__vault_path": vault,
    }
    request = {"query": "zebra", "question": "Which zebra was chosen?"}
    async with memory(**values) as opened:
        kept = await opened.page(request)
        filtered = await opened.page(request, review=True)
    assert sorted(hit.session_id for hit in kept.results) == ["s1", "s3"]
    assert sorted(hit.session_id for hit in filtered.results) == ["s0", "s2", "s4"]
    assert kept.excluded_subagent_sessions == filtered.excluded_subagent_sessions == 1
    assert {kept.note_path, filtered.note_path} == {str(path) for path in vault.iterdir()}
    assert sorted(path.name.split("-")[3] for path in vault.iterdir()) == ["recall", "review"]


async def test_engine_operations_run_in_a_batch(plain_home: Any, memory: Open) -> None:
    plain_home.add("s1", plain_home.user("zebra"))
    requests = [
        {"id": 1, "op": "listSessions", "args": {}},
        {"id": 2, "op": "searchEvents", "args": {"sessionId": "s1", "query": "zebra"}},
        {"id": 3, "op": "readEvent", "args": {"sessionId": "s1", "seq": 99}},
        {"id": 4, "op": "searchSessions", "args": {"query": "zebra", "$aborted": True}},
        {"id": 5, "op": "recall_memory", "args": {"query": "zebra"}},
    ]
    async with memory() as opened:
        lines = [json.dumps(request) for request in requests]
        answers = [answer async for answer in answer_lines(opened, lines)]
    assert answers[0]["ok"][0]["header"]["id"] == "s1"
    assert answers[1]["ok"]["items"][0]["snippet"] == "zebra"
    assert answers[2]["error"]["code"] == "SESSION_QUERY_EVENT_NOT_FOUND"
    assert answers[3]["error"]["code"] == "SESSION_QUERY_ABORTED"
    assert answers[4]["ok"]["results"][0]["session_id"] == "s1"


def test_the_home_is_configured_or_named_by_the_environment(tmp_path: Path) -> None:
    configured = Settings.model_validate({"store": {"home": "/configured"}})
    assert dsh_home(configured, {"DSH_HOME": "/named"}) == Path("/configured")
    assert dsh_home(Settings(), {"DSH_HOME": "/named"}) == Path("/named")
    assert dsh_home(Settings(), {"DSH_HOME": ""}) == Path.home() / ".dsh"
    assert engine_options(configured).home == "/configured"

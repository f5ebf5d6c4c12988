"""The default tools, called by the SDK's client in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from dsh_memory.pipeline.memory.render import render_read, render_search
from dsh_memory.pipeline.memory.results import ReadResult, SearchResult
from mcp import Client

pytestmark = pytest.mark.anyio


async def called(place: Any, name: str, arguments: dict[str, Any] | None) -> Any:
    async with Client(place.server().sdk) as client:
        return await client.call_tool(name, arguments)


async def test_a_hit_leads_to_the_original_text(place: Any) -> None:
    async with Client(place.server().sdk) as client:
        found = await client.call_tool("recall_memory", {"query": "ingest database"})
        hits = found.structured_content["results"]
        hit = next(hit for hit in hits if hit["session_id"] == "tp-0002-storage-decision")
        read = await client.call_tool(
            "fetch_session", {"session_id": hit["session_id"], "seq": hit["seq"]}
        )
    assert "we go with PostgreSQL 16 plus TimescaleDB" in read.content[0].text
    assert read.structured_content["target_seq"] == hit["seq"]


async def test_text_and_structured_content_come_from_one_result(place: Any) -> None:
    found = await called(place, "recall_memory", {"query": "database"})
    [block] = found.content
    assert block.text == render_search(SearchResult.model_validate(found.structured_content))
    arguments = {"session_id": "scratch-0001", "seq": 3}
    read = await called(place, "fetch_session", arguments)
    assert read.structured_content["cwd"] is None
    assert read.content[0].text == render_read(ReadResult.model_validate(read.structured_content))


async def test_null_means_omitted_for_every_optional_field(place: Any) -> None:
    nothing = {"question": None, "session_id": None, "cwd": None, "limit": None, "cursor": None}
    plain = await called(place, "recall_memory", {"query": "database"})
    filled = await called(place, "recall_memory", {"query": "database", **nothing})
    assert filled.structured_content == plain.structured_content
    target = {"session_id": "tp-0001-ingest-kickoff", "seq": 3}
    plain = await called(place, "fetch_session", target)
    filled = await called(
        place, "fetch_session", {**target, "before": None, "after": None, "max_chars": None}
    )
    assert filled.structured_content == plain.structured_content


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("recall_memory", {"query": "x", "source": "codex"}, "'source'"),
        ("recall_memory", {"query": None}, "query must be text, not null"),
        ("recall_memory", {}, "query is required"),
        ("recall_memory", None, "query is required"),
        ("recall_memory", {"query": " "}, "query must not be blank"),
        ("recall_memory", {"query": "x", "limit": "20"}, "limit must be a whole number"),
        ("recall_memory", {"query": "x", "limit": True}, "limit must be a whole number"),
        ("recall_memory", {"query": "x", "limit": 51}, "from 1 to 50"),
        ("recall_memory", {"query": "x", "cwd": "/a", "session_id": "b"}, "exclude each other"),
        ("review_jev_filtered", {"query": "x", "question": "y"}, "REQUEST_JEV_DISABLED"),
        ("review_jev_filtered", {"query": "x", "question": None}, "REQUEST_QUESTION_REQUIRED"),
        ("fetch_session", {"session_id": "x"}, "seq is required"),
        ("fetch_session", {"session_id": "x", "seq": None}, "seq must be a whole number"),
        ("fetch_session", {"session_id": "x", "seq": 0, "max_chars": 99}, "from 100 to 24000"),
        ("fetch_session", {"session_id": "none", "seq": 0}, "SESSION_QUERY_SESSION_NOT_FOUND"),
        ("fetch_session", {"session_id": "scratch-0001", "seq": 999}, "EVENT_NOT_FOUND"),
        ("recall_memory", {"query": "x", "cursor": "bogus"}, "SESSION_QUERY_INVALID_CURSOR"),
    ],
)
async def test_refusals_name_what_is_wrong_and_what_to_do(
    place: Any, name: str, arguments: dict[str, Any] | None, told: str
) -> None:
    result = await called(place, name, arguments)
    assert result.is_error
    [block] = result.content
    assert told in block.text
    assert "\n" in block.text, "a hint follows the message"
    assert len(block.text) < 500
    assert "Traceback" not in block.text


async def test_whole_floats_are_whole_numbers(place: Any) -> None:
    found = await called(place, "recall_memory", {"query": "database", "limit": 1.0})
    assert len(found.structured_content["results"]) == 1


async def test_pages_follow_each_other(place: Any) -> None:
    seen: list[str] = []
    arguments: dict[str, Any] = {"query": "database", "limit": 3}
    async with Client(place.server().sdk) as client:
        while True:
            page = (await client.call_tool("recall_memory", arguments)).structured_content
            seen += [hit["session_id"] for hit in page["results"]]
            if "next_cursor" not in page:
                break
            arguments["cursor"] = page["next_cursor"]
    whole = (await called(place, "recall_memory", {"query": "database"})).structured_content
    assert seen == [hit["session_id"] for hit in whole["results"]]
    assert "next_cursor" not in whole


async def test_subagents_are_counted_and_refused(place: Any) -> None:
    found = await called(place, "recall_memory", {"query": "database"})
    assert found.structured_content["excluded_subagent_sessions"] == 1
    subagent = "6f0d1f4e-52c3-4a5e-9a0e-0f4b7a3f6c21"
    for name, arguments in (
        ("recall_memory", {"query": "nothing of the kind", "session_id": subagent}),
        ("fetch_session", {"session_id": subagent, "seq": 3}),
    ):
        refused = await called(place, name, arguments)
        assert refused.content[0].text.startswith("REQUEST_SUBAGENT_SESSION")


async def test_jev_filters_and_the_review_shows_the_rest(place: Any, scoring_model: Any) -> None:
    place.config.write_text(scoring_model.settings(), "utf-8")
    request = {"query": "database", "question": "Which database did we choose?"}
    kept = await called(place, "recall_memory", request)
    rest = await called(place, "review_jev_filtered", request)
    assert kept.structured_content["jev"]["kept"] == len(kept.structured_content["results"]) > 0
    assert rest.structured_content["results"] == []
    unasked = await called(place, "recall_memory", {"query": "database"})
    assert unasked.content[0].text.startswith("REQUEST_QUESTION_REQUIRED")


async def test_a_note_is_made_of_a_page_and_of_nothing_else(place: Any) -> None:
    vault = place.folder / "vault"
    vault.mkdir()
    place.config.write_text(f'[obsidian]\nenabled = true\nvault_path = "{vault}"\n', "utf-8")
    found = await called(place, "recall_memory", {"query": "database"})
    assert Path(found.structured_content["note_path"]).parent == vault
    await called(place, "fetch_session", {"session_id": "scratch-0001", "seq": 3})
    await called(place, "recall_memory", {"query": "x", "bogus": 1})
    assert len(list(vault.iterdir())) == 1


async def test_an_unknown_tool_is_a_protocol_error(place: Any) -> None:
    async with Client(place.server().sdk) as client:
        with pytest.raises(Exception, match="Unknown tool: 'memory_recall'"):
            await client.call_tool("memory_recall", {"query": "x"})


async def test_two_servers_in_one_process_share_nothing(
    new_place: Callable[[Path], Any], tmp_path: Path, scoring_model: Any
) -> None:
    first, second = new_place(tmp_path / "first"), new_place(tmp_path / "second")
    for project in (second.home / "sessions").glob("--*"):
        for session in project.iterdir():
            if session.name != "site-0001-bird-page":
                for file in session.iterdir():
                    file.unlink()
                session.rmdir()
    first.config.write_text(scoring_model.settings(), "utf-8")
    request = {"query": "database", "question": "Which?"}
    async with (
        Client(first.server().sdk) as one,
        Client(second.server().sdk) as other,
        anyio.create_task_group() as tasks,
    ):
        found: dict[str, list[Any]] = {"one": [], "other": []}

        async def use(name: str, client: Any) -> None:
            for _ in range(3):
                result = await client.call_tool("recall_memory", request)
                found[name].append(json.dumps(result.structured_content["results"]))
                assert ("jev" in result.structured_content) == (name == "one")

        for _ in range(2):
            tasks.start_soon(use, "one", one)
            tasks.start_soon(use, "other", other)
    assert len(set(found["one"])) == len(set(found["other"])) == 1
    ids = [hit["session_id"] for hit in json.loads(found["other"][0])]
    assert ids == ["site-0001-bird-page"]
    assert "tp-0002-storage-decision" in found["one"][0]

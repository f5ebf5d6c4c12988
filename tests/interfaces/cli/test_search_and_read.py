"""``memory-search``, ``memory-read`` and ``memory-help`` as people and scripts use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def test_words_are_joined_to_one_phrase(command: Any) -> None:
    found = command("search", "--json", "ingest", "database")
    assert found.status == 0
    assert found.json["query"] == "ingest database"
    assert found.json["scope"] == "all"
    sessions = {hit["session_id"] for hit in found.json["results"]}
    assert "tp-0002-storage-decision" in sessions


def test_subagent_sessions_are_left_out_and_counted(command: Any) -> None:
    page = command("search", "--json", "prototype database").json
    assert page["results"] == []
    assert page["excluded_subagent_sessions"] == 1


def test_a_json_argument_is_the_whole_request(command: Any) -> None:
    page = command("search", "--json", '{"query": "database", "limit": 2}').json
    assert len(page["results"]) + page["excluded_subagent_sessions"] == 2
    assert page["next_cursor"]


def test_json_cannot_be_mixed_with_request_options(command: Any) -> None:
    refused = command("search", "--json", "--limit", "3", '{"query": "database"}')
    assert refused.status == 2
    assert refused.json["error"]["code"] == "REQUEST_INVALID"
    assert "--limit" in refused.json["error"]["message"]


def test_two_dashes_end_the_options(command: Any) -> None:
    page = command("search", "--json", "--", "--json").json
    assert page["query"] == "--json"


def test_pages_follow_each_other_in_new_processes(command: Any) -> None:
    whole = command("search", "--json", "database").json["results"]
    pages: list[Any] = []
    cursor: list[str] = []
    while True:
        page = command("search", "--json", "--limit", "3", *cursor, "database").json
        pages += page["results"]
        if "next_cursor" not in page:
            break
        cursor = ["--cursor", page["next_cursor"]]
    assert [hit["session_id"] for hit in pages] == [hit["session_id"] for hit in whole]


def test_cwd_is_taken_verbatim_and_must_be_absolute(command: Any) -> None:
    page = command("search", "--json", "--cwd", "/home/mira/notes", "database").json
    assert [hit["session_id"] for hit in page["results"]] == ["notes-0001-reading-list"]
    assert page["scope"] == "cwd"
    refused = command("search", "--json", "--cwd", "notes", "database")
    assert (refused.status, refused.json["error"]["code"]) == (2, "REQUEST_INVALID")


def test_here_is_the_current_directory(command: Any, write_session: Any) -> None:
    write_session(command.home, "here", "a heron at the pier", cwd=str(command.folder))
    write_session(command.home, "there", "a heron at the pier", cwd="/w/elsewhere")
    page = command("search", "--json", "--here", "heron").json
    assert [hit["session_id"] for hit in page["results"]] == ["here"]


def test_read_shows_the_window_around_a_hit(command: Any) -> None:
    window = command("read", "--json", "tp-0002-storage-decision", "3", "--after", "2").json
    assert window["target_seq"] == 3
    assert window["end_seq"] == 5
    text = command("read", "tp-0002-storage-decision", "3").stdout
    assert "TimescaleDB as the ingest database" in text


def test_read_of_a_subagent_session_fails(command: Any) -> None:
    refused = command("read", "--json", "6f0d1f4e-52c3-4a5e-9a0e-0f4b7a3f6c21", "3")
    assert refused.status == 2
    assert refused.json["error"]["code"] == "REQUEST_SUBAGENT_SESSION"


@pytest.mark.parametrize("seq", ["-1", "1.5", "one", "٣", ""])
def test_read_takes_only_whole_event_numbers(command: Any, seq: str) -> None:
    refused = command("read", "--json", "tp-0002-storage-decision", seq)
    assert refused.status == 2
    assert refused.json["error"]["code"].startswith("REQUEST_")


def test_history_is_said_to_be_data(command: Any) -> None:
    for words in (["search", "database"], ["read", "tp-0002-storage-decision", "3"]):
        first = command(*words).stdout.split("\n")[0]
        assert "not" in first
        assert "instructions" in first


def test_help_names_the_version_and_the_missing_project_filter(command: Any) -> None:
    text = command("help").stdout
    assert "0.1.0" in text
    assert "no implicit" in text.lower()
    assert len(text) < 2000


def test_no_hits_is_success(command: Any) -> None:
    nothing = command("search", "qqxnotthere")
    assert nothing.status == 0
    assert "no eligible match in this page" in nothing.stdout


def test_a_missing_home_is_an_empty_store(command: Any, tmp_path: Path) -> None:
    page = command("search", "--json", "--home", str(tmp_path / "none"), "database").json
    assert page["results"] == []


def test_query_answers_lines_in_order(command: Any, tmp_path: Path) -> None:
    requests = [
        {"id": "1", "op": "searchSessions", "args": {"query": "database", "limit": 2}},
        {
            "id": "2",
            "op": "searchSessions",
            "args": {"query": "database", "limit": 2, "cursor": {"$cursorOf": "1"}},
        },
        {"id": "3", "op": "readTitle", "args": {"sessionId": "tp-0007-zh-report"}},
        {"id": "4", "op": "noSuchOperation", "args": {}},
        {"id": "5", "op": "recall_memory", "args": {"query": "数据库"}},
        {"id": "6", "op": "searchSessions", "args": {"query": "x", "$aborted": True}},
    ]
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(json.dumps(request) + "\n" for request in requests) + "nonsense\n")
    done = command("query", str(path))
    assert done.status == 0
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == ["1", "2", "3", "4", "5", "6", None]
    first, second = (
        [item["header"]["id"] for item in answer["ok"]["items"]] for answer in answers[:2]
    )
    assert not set(first) & set(second)
    assert answers[2]["ok"]["title"] == "年度报告要出中文版。字体用什么？"
    assert answers[3]["error"]["code"] == "REQUEST_INVALID"
    assert [hit["session_id"] for hit in answers[4]["ok"]["results"]] == ["tp-0007-zh-report"]
    assert answers[5]["error"]["code"] == "SESSION_QUERY_ABORTED"
    assert answers[6]["error"]["code"] == "REQUEST_INVALID"

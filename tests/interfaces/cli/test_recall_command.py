"""``dsh-memory recall``: the agents' tool of the same name for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

TIDEPOOL = "/home/mira/code/tidepool"


@pytest.fixture
def recall(command: Any) -> Callable[..., Any]:
    return lambda *words: command("recall", *words)


def ids(done: Any) -> list[str]:
    assert done.status == 0, done.stderr
    return [hit["session_id"] for hit in done.json["results"]]


def test_the_project_is_the_given_or_the_current_directory(
    command: Any, recall: Callable[..., Any], write_session: Callable[..., Any]
) -> None:
    assert "tp-0001-ingest-kickoff" in ids(recall("database", "--cwd", TIDEPOOL, "--json"))
    write_session(command.home, "here", "database of this place", str(command.folder.resolve()))
    assert ids(recall("database", "--json")) == ["here"]
    everything = ids(recall("database", "--all-projects", "--limit", "10", "--json"))
    assert {"here", "notes-0001-reading-list"} <= set(everything)


def test_text_has_titles_hint_and_notice(recall: Callable[..., Any]) -> None:
    done = recall("字体", "--cwd", TIDEPOOL)
    assert done.status == 0
    assert done.stdout.startswith("What follows was recorded in earlier DSH sessions.")
    assert "年度报告要出中文版。字体用什么？ | 2026-09-13" in done.stdout
    assert "Hint: The index had no match; these were found by a literal scan" in done.stdout


def test_a_json_request_takes_the_same_fields(recall: Callable[..., Any]) -> None:
    request = {"query": "database", "all_projects": True, "limit": 2, "since_days": None}
    assert len(ids(recall(json.dumps(request), "--json"))) == 2
    mixed = recall(json.dumps(request), "--limit", "3")
    assert mixed.status == 2
    assert "cannot be mixed" in mixed.stderr


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["database", "--limit", "11"], 2, "REQUEST_INVALID"),
        (["database", "--session", "site-0001-bird-page"], 2, "REQUEST_OUTSIDE_WORKSPACE"),
        (["database", "--cursor", "bogus"], 3, "SESSION_QUERY_INVALID_CURSOR"),
        (["database", "--set", "index.open_at=never"], 1, "SESSION_QUERY_SEARCH_DISABLED"),
        (["database", "--cwd", "relative"], 2, "REQUEST_INVALID"),
    ],
)
def test_failures_have_code_hint_and_status(
    recall: Callable[..., Any], words: list[str], status: int, code: str
) -> None:
    done = recall(*words, "--json")
    assert (done.status, done.json["error"]["code"]) == (status, code)
    assert done.json["error"]["hint"]

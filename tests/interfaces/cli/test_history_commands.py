"""``dsh-memory sessions``, ``events``, ``surface`` and ``trace``."""

from __future__ import annotations

from typing import Any


def test_sessions_show_title_directory_and_size(command: Any) -> None:
    overview = command("sessions", "--json").json
    found = {item["session_id"]: item for item in overview["sessions"]}
    assert len(found) == 13
    report = found["tp-0007-zh-report"]
    assert report["title"] == "年度报告要出中文版。字体用什么？"
    assert (report["events"], report["cwd"]) == (14, "/home/mira/code/tidepool")
    assert (report["live"], report["persisted"]) == (False, True)
    assert overview["not_listed"] == []


def test_sessions_are_filtered_by_directory_date_and_parent(command: Any) -> None:
    def ids(*options: str) -> list[str]:
        return [
            item["session_id"] for item in command("sessions", "--json", *options).json["sessions"]
        ]

    assert ids("--cwd", "/home/mira/notes") == ["notes-0001-reading-list"]
    assert ids("--since", "2026-09-17T00:00:00") == ["scratch-0001", "notes-0001-reading-list"]
    assert ids("--parent", "tp-0002-storage-decision") == ["tp-0003-what-if-duckdb"]
    refused = command("sessions", "--json", "--since", "yesterday")
    assert (refused.status, refused.json["error"]["code"]) == (2, "REQUEST_INVALID")


def test_unreadable_sessions_and_stray_logs_are_marked(command: Any, write_session: Any) -> None:
    log = write_session(command.home, "broken", "a heron")
    log.write_text(log.read_text().replace('"turn": 1}', '"turn": 7}', 1))
    stray = write_session(command.home, "stray", "a heron")
    stray.write_text("{}\n")
    text = command("sessions").stdout
    assert "unreadable" in text
    assert "SESSION_QUERY_CORRUPT_SESSION" in text
    assert "stray/session.v4.jsonl" in text


def test_events_are_listed_with_their_surface(command: Any) -> None:
    lines = command("events", "tp-0005-migration-day").stdout.splitlines()
    assert len(lines) == 34
    assert lines[3].split() == ["3", "2026-09-09T08:06:43Z", "shadowed", "user/message"]


def test_the_surface_is_shown_in_the_models_order(command: Any) -> None:
    text = command("surface", "tp-0005-migration-day").stdout
    assert text.index("[2] system/message") < text.index("[26] user/message")
    assert "[3]" not in text


def test_the_lineage_is_drawn_as_a_tree(command: Any) -> None:
    lines = command("trace", "tp-0003-what-if-duckdb").stdout.splitlines()
    assert lines[0].startswith("tp-0002-storage-decision")
    assert lines[1].startswith("└─ tp-0003-what-if-duckdb")
    assert lines[1].endswith("<- this session")


def test_an_event_is_traced(command: Any) -> None:
    text = command("trace", "tp-0005-migration-day", "26").stdout
    assert "replaces: 3, 5, 7, 10, 15, 16, 18, 21" in text
    assert command("trace", "tp-0005-migration-day", "--json", "999").status == 1

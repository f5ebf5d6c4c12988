"""Rendered texts: what they must say, and that they never get larger than promised."""

from __future__ import annotations

from typing import Any

import pytest
from dsh_memory.pipeline.memory.render import render_error, render_help, render_read, render_search
from dsh_memory.pipeline.memory.results import (
    JevReport,
    ReadEvent,
    ReadResult,
    SearchHit,
    SearchResult,
)
from dsh_memory.pipeline.shared.closed_models import UnreadableSessionReport
from dsh_memory.pipeline.shared.notices import NOTICE
from dsh_memory.pipeline.status.render import render_status
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.sessionquery.js.text import clip_utf16, utf16_length
from hypothesis import given, settings
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def long_text(units: int) -> st.SearchStrategy[str]:
    """Texts of up to `units` units, most of them near the limit."""
    return st.tuples(st.sampled_from(["x", "中", "😀", "a😀"]), TEXT).map(
        lambda parts: clip_utf16(parts[1] + parts[0] * units, units)
    ) | TEXT.map(lambda text: clip_utf16(text, units))


TIME = st.integers(-(2**53), 2**53)
HITS = st.builds(
    SearchHit,
    session_id=long_text(2000),
    cwd=st.none() | long_text(4000),
    created_at=TIME,
    seq=st.integers(0, 2**53),
    type=long_text(300),
    time=TIME,
    surface=st.sampled_from(["current", "shadowed", "log-only"]),
    snippet=long_text(500),
    snippet_truncated=st.booleans(),
    noul=st.none() | st.floats(0, 1),
    echo=st.none() | st.booleans(),
)
JEV = st.builds(
    JevReport,
    model=long_text(200),
    threshold=st.just(0.5),
    selection=st.sampled_from(["kept", "filtered"]),
    reviewed=st.integers(0, 50),
    kept=st.integers(0, 50),
    filtered=st.integers(0, 50),
    segments=st.integers(0, 5000),
    requests=st.integers(0, 5000),
    input_tokens=st.integers(0, 2**53),
    elapsed_ms=st.integers(0, 2**53),
)
UNREADABLE = st.builds(
    UnreadableSessionReport, path=long_text(2000), code=TEXT, reason=long_text(1000)
)
PAGES = st.builds(
    SearchResult,
    source=st.just("dsh"),
    query=long_text(1000),
    scope=st.sampled_from(["all", "cwd", "session"]),
    results=st.lists(HITS, max_size=50).map(tuple) | HITS.map(lambda hit: (hit,) * 50),
    excluded_subagent_sessions=st.integers(0, 50),
    next_cursor=st.none() | long_text(16000),
    excluded_echoes=st.none() | st.integers(0, 50),
    jev=st.none() | JEV,
    note_path=st.none() | long_text(4000),
    diagnostics=st.none() | st.lists(long_text(1000), max_size=8).map(tuple),
    unreadable_sessions=st.none() | st.lists(UNREADABLE, max_size=60).map(tuple),
)


@given(PAGES)
@settings(deadline=None, max_examples=60)
def test_a_page_stays_below_40000_and_names_every_hit(page: SearchResult) -> None:
    text = render_search(page)
    assert utf16_length(text) < 40_000
    assert text.startswith(NOTICE)
    for number in range(1, len(page.results) + 1):
        assert f"\n{number}. Session " in text
    if page.next_cursor is not None:
        assert text.endswith(page.next_cursor)


@st.composite
def windows(draw: st.DrawFn) -> ReadResult:
    count = draw(st.integers(1, 41))
    budget = 24_000
    events = []
    first = draw(st.integers(0, 2**53 - 50))
    kind, moment, filler = draw(long_text(300)), draw(TIME), draw(TEXT.filter(bool))
    for number in range(count):
        units = draw(st.integers(0, budget))
        text = clip_utf16(filler * units, units)
        budget -= utf16_length(text)
        events.append(
            ReadEvent(
                seq=first + number,
                type=kind,
                time=moment,
                text=text,
                text_truncated=draw(st.booleans()),
            )
        )
    return ReadResult(
        source="dsh",
        session_id=draw(long_text(2000)),
        cwd=draw(st.none() | long_text(4000)),
        created_at=draw(TIME),
        target_seq=first + count // 2,
        start_seq=first,
        end_seq=first + count - 1,
        inherited_event_count=draw(st.integers(0, 2**53)),
        events=tuple(events),
        truncated=any(event.text_truncated for event in events),
    )


@given(windows())
@settings(deadline=None, max_examples=60)
def test_a_window_stays_below_35000_and_shows_every_event(window: ReadResult) -> None:
    text = render_read(window)
    assert utf16_length(text) < 35_000
    assert text.startswith(NOTICE)
    assert "(target)" in text
    for event in window.events:
        assert f"\n[{event.seq}] " in text
        assert event.text in text


@given(long_text(5000), TEXT, st.none() | long_text(3000))
def test_an_error_stays_below_500_and_keeps_code_and_hint(
    message: str, code: str, hint: str | None
) -> None:
    text = render_error(DshMemoryError(message, code="X_" + code, hint=hint))
    assert utf16_length(text) < 500
    assert text.startswith("X_")
    if hint is not None and utf16_length(hint) <= 180:
        assert text.endswith(hint)


def test_help_is_short_and_says_the_rules() -> None:
    text = render_help("1.2.3")
    assert utf16_length(text) < 2_000
    for words in (
        "1.2.3",
        "no implicit project filter",
        "recall_memory",
        "fetch_session",
        "memory-search",
        "memory-review",
        "memory-read",
        "memory-status",
        "never an instruction",
    ):
        assert words in text


def a_hit(**changes: Any) -> SearchHit:
    values: dict[str, Any] = {
        "session_id": "s1",
        "cwd": "/w",
        "created_at": 0,
        "seq": 7,
        "type": "user/message",
        "time": 1_796_160_976_509,
        "surface": "shadowed",
        "snippet": "the words",
        "snippet_truncated": False,
    }
    return SearchHit(**(values | changes))


def a_page(*hits: SearchHit, **changes: Any) -> SearchResult:
    values: dict[str, Any] = {
        "source": "dsh",
        "query": "q",
        "scope": "all",
        "results": hits,
        "excluded_subagent_sessions": 0,
    }
    return SearchResult(**(values | changes))


def test_a_hit_shows_where_it_is() -> None:
    text = render_search(a_page(a_hit(), a_hit(cwd=None, snippet_truncated=True, echo=True)))
    assert "2 matches in all main sessions [all]" in text
    assert "1. Session s1 | seq 7 | user/message | shadowed | 2026-12-01T" in text
    assert "cwd: /w\nthe words" in text
    assert "cwd: (unset)" in text
    assert "snippet shortened" in text
    assert text.count("snippet shortened") == 1
    assert text.count("[echo:") == 1
    assert "left out" not in text
    assert "cursor" not in text


def test_an_empty_page_says_so_and_how_to_go_on() -> None:
    text = render_search(
        a_page(scope="cwd", excluded_subagent_sessions=3, excluded_echoes=2, next_cursor="CURSOR")
    )
    assert "no eligible match in this page" in text
    assert "subagent's: 3" in text
    assert "echoes of this memory: 2" in text
    assert "Repeat all arguments unchanged" in text
    assert text.endswith("CURSOR")


def test_what_was_left_out_as_unreadable_is_named() -> None:
    item = UnreadableSessionReport(path="p/s.jsonl", code="C", reason="torn")
    text = render_search(a_page(unreadable_sessions=(item,) * 7, diagnostics=("in memory",)))
    assert text.count("p/s.jsonl (torn)") == 5
    assert "and 2 more unreadable sessions" in text
    assert "in memory" in text


def test_a_window_says_what_is_missing() -> None:
    def event(seq: int, text: str, cut: bool = False) -> ReadEvent:
        return ReadEvent(seq=seq, type="t", time=0, text=text, text_truncated=cut)

    text = render_read(
        ReadResult(
            source="dsh",
            session_id="s1",
            cwd=None,
            created_at=0,
            target_seq=5,
            start_seq=4,
            end_seq=6,
            inherited_event_count=4,
            events=(event(4, ""), event(5, "target text"), event(6, "cut", True)),
            truncated=True,
        )
    )
    assert "Session s1 | target seq 5 | window 4-6" in text
    assert "cwd: (unset)" in text
    assert "Inherited events: 4." in text
    assert "reasoning" in text
    assert "[4] t 1970-01-01T00:00:00Z\n(no recalled text)" in text
    assert "[5] t (target) 1970-01-01T00:00:00Z\ntarget text" in text
    assert text.count("truncated by the text budget") == 1


@pytest.mark.parametrize("moment", [2**53, -(2**53), 10**30])
def test_times_beyond_the_calendar_are_numbers(moment: int) -> None:
    assert f"{moment} ms" in render_search(a_page(a_hit(time=moment)))


def test_status_is_indented_text() -> None:
    status = {
        "version": "1",
        "index": {"open_at": None, "exists": False},
        "settings": {"jev.base_url": {"value": "u", "from": "user"}},
        "list": [{"a": 1}, "b"],
    }
    assert render_status(status) == (
        "version: 1\nindex:\n  open at: (unset)\n  exists: no\n"
        "settings:\n  jev.base_url: u (user)\nlist:\n  - a 1\n  - b"
    )

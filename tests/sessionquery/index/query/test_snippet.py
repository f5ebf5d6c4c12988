from __future__ import annotations

import re

import pytest
from dsh_memory.sessionquery.index.query.snippet import make_snippet
from dsh_memory.sessionquery.js.text import BLANK_CLASS
from hypothesis import given
from hypothesis import strategies as st

LONG = "long snippet test: " + " ".join(f"word{n:03d}" for n in range(200))


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (60, "long snippet test: word000 word001 word002 word003 word004 …"),
        (61, "long snippet test: word000 word001 word002 word003 word004 w…"),
        (10, "…ng snipp…"),
        (7, "…g sni…"),
        (5, "… sn…"),
        (4, "… s…"),
        (3, "…s…"),
        (2, "…s"),
        (1, "…"),
    ],
)
def test_small_limits_are_cut_as_the_real_engine_does(limit: int, expected: str) -> None:
    assert make_snippet(LONG, LONG.index("snippet"), limit) == expected


def test_a_short_text_is_only_normalized() -> None:
    assert make_snippet("\u3000 a\n\n b\tc \ufeff", 3, 240) == "a b c"


def test_a_match_near_the_end_fills_the_whole_room_before_it() -> None:
    text = "x" * 1000 + " needle"
    snippet = make_snippet(text, 1001, 240)
    assert len(snippet) == 240
    assert snippet.endswith(" needle")
    assert snippet.startswith("…x")


def _whole_text_rule(text: str, match: int, limit: int) -> str:
    """The rule in its plain form, over the whole text."""
    before = re.sub(BLANK_CLASS + "+", " ", text[:match]).lstrip(" ")
    full = before + re.sub(BLANK_CLASS + "+", " ", text[match:]).rstrip(" ")
    length, place = len(full), len(before)
    if length <= limit:
        return full
    place = min(place, length - 1)
    start = max(0, place - limit // 3)
    prefix = "…" if start else ""
    room = limit - len(prefix) - 1
    if place >= start + room:
        start = place - room + 1
    end = min(length, start + room)
    if end == length:
        room = limit - len(prefix)
        return prefix + full[max(0, length - room) :]
    return prefix + full[start:end] + "…"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "bc", " ", "\n\n\n", "\u3000" * 3000, "xyz" * 700, "é😀", "…"]),
            st.integers(1, 40),
        ),
        max_size=12,
    ),
    st.data(),
)
def test_looking_at_a_part_gives_what_the_whole_text_gives(
    parts: list[tuple[str, int]], data: st.DataObject
) -> None:
    text = "".join(piece * count for piece, count in parts) + "m" + "tail " * 3
    place = data.draw(st.integers(0, len(text) - 1).filter(lambda at: text[at].strip("\u3000 \n")))
    limit = data.draw(st.sampled_from([30, 60, 240, 500]))
    assert make_snippet(text, place, limit) == _whole_text_rule(text, place, limit)

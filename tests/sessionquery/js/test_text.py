"""Text and number rules of JavaScript that differ from Python's."""

from __future__ import annotations

import math

import pytest
from dsh_memory.sessionquery.js.text import (
    JS_BLANKS,
    clip_utf16,
    collapse_blanks,
    is_count,
    is_finite_number,
    is_js_integer,
    is_safe_integer,
    replace_surrogates,
    split_blanks,
    trim,
    utf16_length,
)
from hypothesis import example, given
from hypothesis import strategies as st

TEXTS = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=60)


def units(text: str) -> list[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[i] | data[i + 1] << 8 for i in range(0, len(data), 2)]


@given(TEXTS, st.integers(-2, 130))
@example("a\U0001f600b", 2)
@example("\ud83d\ude00", 1)
def test_a_clipped_text_is_the_longest_prefix_that_splits_no_pair(text: str, limit: int) -> None:
    clipped = units(clip_utf16(text, limit))
    whole = units(text)
    assert len(clipped) <= max(0, limit)
    assert whole[: len(clipped)] == clipped
    if len(clipped) < min(len(whole), limit):
        rest = whole[len(clipped) :]
        assert len(clipped) == limit - 1
        assert 0xD800 <= rest[0] <= 0xDBFF
        assert 0xDC00 <= rest[1] <= 0xDFFF
    elif clipped and len(clipped) < len(whole):
        pair = 0xD800 <= clipped[-1] <= 0xDBFF and 0xDC00 <= whole[len(clipped)] <= 0xDFFF
        assert not pair


@given(TEXTS)
def test_length_counts_units(text: str) -> None:
    assert utf16_length(text) == len(units(text))


@given(TEXTS)
def test_replaced_text_can_be_encoded_and_keeps_everything_else(text: str) -> None:
    replaced = replace_surrogates(text)
    replaced.encode("utf-8")
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert replaced == joined


def test_a_pair_in_two_characters_becomes_one() -> None:
    assert replace_surrogates("\ud83d\ude00 \ud83d x") == "\U0001f600 \ufffd x"


@pytest.mark.parametrize("blank", list(JS_BLANKS))
def test_blanks_are_trimmed_and_collapsed(blank: str) -> None:
    text = f"{blank}{blank}a{blank} b{blank}"
    assert trim(text) == f"a{blank} b"
    assert collapse_blanks(text) == "a b"
    assert split_blanks(text) == ["a", "b"]


@pytest.mark.parametrize("other", ["\u0085", "\u001c", "\u001f", "\u180e", "\u200b"])
def test_what_only_python_takes_for_a_blank_stays(other: str) -> None:
    assert trim(f"{other}a") == f"{other}a"
    assert split_blanks(f"a{other}b") == [f"a{other}b"]


def test_blank_text_has_no_parts() -> None:
    assert split_blanks(" \ufeff\n") == []


@pytest.mark.parametrize(
    ("value", "integer", "safe", "count"),
    [
        (3, True, True, True),
        (3.0, True, True, True),
        (-3.0, True, True, False),
        (3.5, False, False, False),
        (2**53 - 1, True, True, True),
        (2**53, True, False, False),
        (1e300, True, False, False),
        (True, False, False, False),
        ("3", False, False, False),
        (None, False, False, False),
        (math.nan, False, False, False),
        (math.inf, False, False, False),
    ],
)
def test_integers_are_those_of_javascript(
    value: object, integer: bool, safe: bool, count: bool
) -> None:
    assert is_js_integer(value) is integer
    assert is_safe_integer(value) is safe
    assert is_count(value) is count


def test_numbers_are_finite_and_no_booleans() -> None:
    assert is_finite_number(1.5)
    assert is_finite_number(-(10**30))
    assert not any(is_finite_number(value) for value in (math.inf, math.nan, True, "1", None))

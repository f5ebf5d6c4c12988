"""Segments: bounded, complete, in order, cut between code points."""

from __future__ import annotations

import json

import pytest
from dsh_memory.classifier.segments import encode, encoded_size, split, well_formed
from hypothesis import given
from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=600)


@given(TEXTS, st.integers(min_value=6, max_value=200))
def test_segments_joined_are_the_text_and_none_is_too_large(text: str, limit: int) -> None:
    segments = split(text, limit)
    assert "".join(segments) == text
    assert all(encoded_size(segment) <= limit for segment in segments)
    assert len(segments) == 1 or all(segments)


@given(TEXTS)
def test_encoded_size_is_what_the_text_takes_in_a_body(text: str) -> None:
    body = encode({"text": text})
    assert len(body) == len(b'{"text":""}') + encoded_size(text)
    assert json.loads(body) == {"text": text}


@given(st.text(max_size=50))
def test_lone_surrogates_are_replaced_and_nothing_else_changes(text: str) -> None:
    clean = well_formed(text)
    clean.encode()
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert clean == text


def test_surrogate_pairs_become_one_code_point() -> None:
    assert well_formed("a\ud83d\ude00b\ud83d") == "a\U0001f600b\ufffd"


def test_a_cut_prefers_white_space_near_the_limit() -> None:
    assert split("aaaa bbbb cccc", 11) == ("aaaa bbbb ", "cccc")


def test_one_long_word_is_cut_at_the_limit() -> None:
    assert split("x" * 25, 10) == ("x" * 10, "x" * 10, "x" * 5)


def test_white_space_far_from_the_limit_does_not_shorten_a_segment() -> None:
    assert split("a " + "b" * 30, 16)[0] == "a " + "b" * 14


def test_escapes_count_as_what_they_become() -> None:
    assert [encoded_size(char) for char in '"\n\x01\x7fé€😀'] == [2, 2, 6, 1, 2, 3, 4]
    assert split("\x01" * 5, 12) == ("\x01\x01", "\x01\x01", "\x01")


def test_an_astral_character_is_never_cut() -> None:
    assert split("😀" * 5, 10) == ("😀😀", "😀😀", "😀")


def test_an_empty_text_is_one_segment() -> None:
    assert split("", 100) == ("",)


def test_a_limit_below_one_code_point_is_refused() -> None:
    with pytest.raises(ValueError, match="limit of 5"):
        split("text", 5)

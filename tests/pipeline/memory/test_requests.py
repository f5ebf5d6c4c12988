"""Requests: limits in UTF-16 units, JavaScript's integers and blanks, closed objects."""

from __future__ import annotations

from typing import Any

import pytest
from dsh_memory.pipeline.memory.render import render_error
from dsh_memory.pipeline.memory.requests import parse_read, parse_search
from dsh_memory.pipeline.shared.errors import INVALID, QUESTION_REQUIRED, RequestError
from dsh_memory.sessionquery.js.text import utf16_length
from hypothesis import given
from hypothesis import strategies as st

BAD_SEARCHES: list[Any] = [
    None,
    [],
    "query",
    7,
    True,
    {},
    {"query": None},
    {"query": ""},
    {"query": "   "},
    {"query": "\ufeff\u3000\n"},
    {"query": 7},
    {"query": ["x"]},
    {"query": "x" * 1001},
    {"query": " " * 1001 + "x"},
    {"query": "😀" * 501},
    *({"query": "x", "limit": value} for value in (0, 51, -1, 1.2, "2", True, [], 1e300)),
    {"query": "x", "limit": float("nan")},
    {"query": "x", "limit": 10**400},
    {"query": "x", "session_id": "a", "cwd": "/a"},
    *({"query": "x", name: ""} for name in ("cursor", "cwd", "session_id", "question")),
    *({"query": "x", name: "  "} for name in ("cursor", "cwd", "session_id", "question")),
    *({"query": "x", name: 3} for name in ("cursor", "cwd", "session_id", "question")),
    {"query": "x", "source": "dsh"},
    {"query": "x", "entities": ["x"]},
    {"query": "x", "Query": "x"},
    {"query": "x", "question": "q" * 1001},
    {"query": "x", "session_id": "s" * 2001},
    {"query": "x", "cwd": "c" * 4001},
    {"query": "x", "cursor": "c" * 16001},
]
BAD_READS: list[Any] = [
    None,
    [],
    {},
    {"session_id": "", "seq": 0},
    {"session_id": None, "seq": 0},
    {"session_id": "s"},
    *({"session_id": "s", "seq": seq} for seq in (-1, 0.2, 2**53, "0", None, True, float("inf"))),
    *(
        {"session_id": "s", "seq": 0, **extra}
        for extra in (
            {"before": -1},
            {"before": 21},
            {"after": 21},
            {"max_chars": 99},
            {"max_chars": 24001},
            {"max_chars": "100"},
            {"resume": True},
        )
    ),
]


def _label(value: Any) -> str:
    return repr(value)[:40]


@pytest.mark.parametrize("value", BAD_SEARCHES, ids=_label)
def test_bad_searches_are_refused_briefly(value: Any) -> None:
    with pytest.raises(RequestError) as caught:
        parse_search(value)
    assert caught.value.code == INVALID
    assert len(render_error(caught.value)) < 500


@pytest.mark.parametrize("value", BAD_READS, ids=_label)
def test_bad_reads_are_refused_briefly(value: Any) -> None:
    with pytest.raises(RequestError) as caught:
        parse_read(value)
    assert caught.value.code == INVALID
    assert len(render_error(caught.value)) < 500


def test_limits_are_measured_before_trimming_and_in_units() -> None:
    assert parse_search({"query": "x" * 1000}).query == "x" * 1000
    assert parse_search({"query": "😀" * 500}).query == "😀" * 500
    assert parse_search({"query": " " * 999 + "x"}).query == "x"
    request = parse_search({"query": "x", "cwd": "c" * 4000, "cursor": "k" * 16000})
    assert (len(request.cwd or ""), len(request.cursor or "")) == (4000, 16000)


def test_the_query_is_normalized_with_javascript_blanks() -> None:
    assert parse_search({"query": "  data\n base\t "}).query == "data base"
    assert parse_search({"query": "a\u00a0\ufeff\u2028b"}).query == "a b"
    assert parse_search({"query": "a\u0085b\x1cc"}).query == "a\u0085b\x1cc"
    assert parse_search({"query": "中 文"}).query == "中 文"


def test_other_texts_are_trimmed_only() -> None:
    request = parse_search({"query": "x", "cwd": " /a  b ", "question": "\n Why  so? "})
    assert (request.cwd, request.question) == ("/a  b", "Why  so?")


def test_null_means_omitted_for_optional_fields() -> None:
    nothing = dict.fromkeys(("question", "session_id", "cwd", "limit", "cursor"))
    assert parse_search({"query": "x", **nothing}) == parse_search({"query": "x"})
    assert parse_search({"query": "x"}).limit == 20
    request = parse_read(
        {"session_id": " s ", "seq": 0, "before": None, "after": None, "max_chars": None}
    )
    assert request == parse_read({"session_id": "s", "seq": 0})
    assert (request.before, request.after, request.max_chars) == (4, 4, 12000)


@pytest.mark.parametrize(("given_limit", "limit"), [(1, 1), (50, 50), (20.0, 20)])
def test_whole_floats_are_integers(given_limit: float, limit: int) -> None:
    value = parse_search({"query": "x", "limit": given_limit}).limit
    assert (value, type(value)) == (limit, int)


def test_the_bounds_of_a_read_are_inclusive() -> None:
    request = parse_read(
        {"session_id": "s", "seq": 2**53 - 1, "before": 20, "after": 0, "max_chars": 24000}
    )
    assert (request.seq, request.before, request.after, request.max_chars) == (
        2**53 - 1,
        20,
        0,
        24000,
    )
    assert parse_read({"session_id": "s", "seq": -0.0, "max_chars": 100.0}).max_chars == 100


def test_lone_surrogates_become_replacement_characters() -> None:
    request = parse_search({"query": "a\ud800b \ud83d\ude00", "cwd": "/\udc80"})
    assert (request.query, request.cwd) == ("a\ufffdb 😀", "/\ufffd")


def test_scopes() -> None:
    assert parse_search({"query": "x"}).scope == "all"
    assert parse_search({"query": "x", "cwd": "/a"}).scope == "cwd"
    assert parse_search({"query": "x", "session_id": "s"}).scope == "session"


@pytest.mark.parametrize("question", [{}, {"question": None}])
def test_a_review_needs_a_question(question: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        parse_search({"query": "x", **question}, review=True)
    assert caught.value.code == QUESTION_REQUIRED
    assert parse_search({"query": "x", "question": "Why?"}, review=True).question == "Why?"


def test_an_unknown_field_is_named_even_beside_other_faults() -> None:
    with pytest.raises(RequestError, match="sauce") as caught:
        parse_search({"query": "", "sauce": 1})
    assert "query, question, session_id, cwd, limit, cursor" in (caught.value.hint or "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    ["query", "question", "session_id", "cwd", "limit", "cursor", "seq", "before", "max_chars"]
)


@given(JSON | st.dictionaries(FIELDS | st.text(), JSON), st.booleans())
def test_any_value_is_parsed_or_refused_in_words(value: Any, review: bool) -> None:
    for parse in (lambda: parse_search(value, review=review), lambda: parse_read(value)):
        refusal: RequestError | None = None
        try:
            parse()
        except RequestError as error:
            refusal = error
        assert refusal is None or utf16_length(render_error(refusal)) < 500

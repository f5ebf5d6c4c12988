"""Answers: exactly what was asked, or an error that names item and value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dsh_memory.classifier.answers import parse
from dsh_memory.classifier.errors import JevError
from hypothesis import given
from hypothesis import strategies as st


def body(answers: Any, **more: Any) -> bytes:
    return json.dumps({"model": "nimble", "answers": answers, **more}).encode()


def noul(value: Any) -> dict[str, Any]:
    return {"item_0": {"type": "noul", "noul": value}}


def failure(content: bytes, asked: int = 1) -> JevError:
    with pytest.raises(JevError) as caught:
        parse(content, asked)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 0.5, 1e-300])
def test_every_number_from_0_to_1_is_taken(value: float) -> None:
    assert parse(body(noul(value)), 1).nouls == (float(value),)


@pytest.mark.parametrize(
    ("literal", "shown"),
    [
        ('"0.9"', '"0.9"'),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("-Infinity", "-Infinity"),
        ("1.2", "1.2"),
        ("-0.1", "-0.1"),
        ("1e400", "Infinity"),
        ("true", "true"),
        ("false", "false"),
        ("null", "null"),
        ("[0.5]", "[0.5]"),
        ("{}", "{}"),
        ("1" + "0" * 400, "beyond 1e20"),
    ],
)
def test_any_other_noul_is_an_error_with_item_and_value(literal: str, shown: str) -> None:
    content = b'{"answers":{"item_0":{"type":"noul","noul":%s}}}' % literal.encode()
    error = failure(content)
    assert error.code == "JEV_INVALID_ANSWER"
    assert "item_0" in error.message
    assert shown in error.message


@pytest.mark.parametrize(
    ("answers", "asked", "named"),
    [
        ({}, 2, "item_0 and 1 more"),
        (noul(0.5), 2, "item_1"),
        ({**noul(0.5), "item_1": {"type": "noul", "noul": 0.5}}, 1, "item_1"),
        ({"ITEM_0": {"type": "noul", "noul": 0.5}}, 1, "item_0"),
        ({"item_0": 0.5}, 1, "item_0 is no object: 0.5"),
        ({"item_0": {"type": "score", "noul": 0.5}}, 1, '"score"'),
        ({"item_0": {"noul": 0.5}}, 1, "type null"),
        ({"item_0": {"type": "noul"}}, 1, "item_0 has no noul"),
        ([0.5], 1, "[0.5]"),
        (None, 1, "null"),
    ],
)
def test_wrong_keys_and_types_are_errors(answers: Any, asked: int, named: str) -> None:
    error = failure(body(answers), asked)
    assert error.code == "JEV_INVALID_ANSWER"
    assert named in error.message


def test_a_key_given_twice_is_an_error() -> None:
    one = '"item_0":{"type":"noul","noul":0.1}'
    error = failure(f'{{"answers":{{{one},{one}}}}}'.encode())
    assert error.code == "JEV_INVALID_ANSWER"
    assert "'item_0' twice" in error.message


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"  \n",
        b"<html><body>It works!</body></html>",
        b"\xff\xfe{}",
        b'{"answers":',
        b"[]",
        b'"text"',
        b"42",
        b")]}'\n{}",
        b"[" * 100_000,
        b'{"answers":' * 100_000,
    ],
)
def test_what_is_no_json_object_is_told_so(content: bytes) -> None:
    assert failure(content).code == "JEV_NOT_JSON"


def test_an_error_in_a_successful_response_is_a_server_failure() -> None:
    error = failure(b'{"error":"llama runner process has terminated"}')
    assert error.code == "JEV_SERVER_FAILED"
    assert "terminated" in error.message


def test_fields_that_nobody_asked_for_beside_the_answer_are_ignored() -> None:
    content = body({"item_0": {"type": "noul", "noul": 0.25, "confidence": 1}}, latency_ms=3)
    assert parse(content, 1).nouls == (0.25,)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 174, "output_tokens": 1}, 174),
        ({"input_tokens": 12.0}, 12),
        ({}, 0),
        (None, 0),
    ],
)
def test_input_tokens_are_reported_where_the_server_tells_them(usage: Any, tokens: int) -> None:
    assert parse(body(noul(0.5), usage=usage), 1).input_tokens == tokens


@pytest.mark.parametrize(
    "usage",
    [
        [],
        "174",
        {"input_tokens": "1"},
        {"input_tokens": -1},
        {"input_tokens": True},
        {"input_tokens": 2**53},
        {"input_tokens": 10**4000},
    ],
)
def test_a_token_count_that_is_none_is_an_error(usage: Any) -> None:
    assert failure(body(noul(0.5), usage=usage)).code == "JEV_INVALID_ANSWER"


def test_hostile_values_are_shown_clipped_and_inert() -> None:
    error = failure(body({"item_0": {"type": "noul", "noul": "\x1b[2J\u202e" + "x" * 5000}}))
    assert len(error.message) < 200
    assert "\x1b" not in error.message
    assert "\u202e" not in error.message


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(JSON, st.integers(min_value=1, max_value=3))
def test_no_document_gets_through_unchecked(document: Any, asked: int) -> None:
    with pytest.raises(JevError):
        parse(json.dumps(document).encode(), asked)


@given(st.binary(max_size=60))
def test_no_bytes_get_through_unchecked(content: bytes) -> None:
    with pytest.raises(JevError):
        parse(content, 1)

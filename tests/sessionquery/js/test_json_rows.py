"""Rows are read as JavaScript reads them, and judged by their envelope."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from dsh_memory.sessionquery.js.json import JsonDepthError, JsonError, parse_json
from dsh_memory.sessionquery.rules.envelope import normalize_row, unpack_sources
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'"\\ud800x"', "\ud800x"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\xff\xe2\x82"', "\ufffd\ufffd"),
        (b"4.0", 4),
        (b"1e999", math.inf),
        (b"  [1]\r", [1]),
        (b"123456789012345678901234567890", 123456789012345678901234567890.0),
        (b'{"__proto__":{"x":1}}', {"__proto__": {"x": 1}}),
    ],
)
def test_what_javascript_accepts_is_read(text: bytes, value: Any) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"", b"NaN", b"[Infinity]", b"-Infinity", b"01", b"1.", b".5", b"{'a':1}", b"[1,]",
        b"\xef\xbb\xbf{}", b'"a\nb"', b"[1] x", b"\xc2\xa0[1]", b"{bad", b'"\\x41"',
        b'["\\ud800",NaN]',
    ],
)  # fmt: skip
def test_what_javascript_refuses_is_no_row(text: bytes) -> None:
    with pytest.raises(JsonError):
        parse_json(text)


def test_too_deep_nesting_is_told_apart() -> None:
    with pytest.raises(JsonDepthError):
        parse_json(b"[" * 100_000 + b"]" * 100_000)


def pack(seqs: list[int]) -> list[Any]:
    """Pack as writers do: three or more neighbours become a range."""
    out: list[Any] = []
    start = 0
    while start < len(seqs):
        end = start
        while end + 1 < len(seqs) and seqs[end + 1] == seqs[end] + 1:
            end += 1
        run = seqs[start : end + 1]
        out.extend([[run[0], run[-1]]] if len(run) > 2 else run)
        start = end + 1
    return out


@given(st.sets(st.integers(0, 60)), st.integers(0, 3))
def test_packed_sources_unpack_to_what_was_cited(cited: set[int], room: int) -> None:
    seqs = sorted(cited)
    seq = max(seqs, default=0) + 1 + room
    assert unpack_sources(json.loads(json.dumps(pack(seqs))), seq) == seqs
    if seqs:
        assert unpack_sources(pack(seqs), max(seqs)) is None


@pytest.mark.parametrize(
    ("packed", "unpacked"),
    [
        ([[0, 1]], [0, 1]),
        ([[1, 1]], [1]),
        ([1, 0], [1, 0]),
        ([1.0], [1]),
        ([], []),
        ([[0, 2], 4], [0, 1, 2, 4]),
        ([[1, 0]], None),
        ([2, [0, 1]], None),
        ([[0, 1], 1], None),
        ([0, 0], None),
        ([5], None),
        ([-1], None),
        (["1"], None),
        ([True], None),
        ([[0, 1, 2]], None),
        ([[]], None),
        ("x", None),
        (None, None),
    ],
)
def test_source_lists_follow_the_rules(packed: Any, unpacked: list[int] | None) -> None:
    assert unpack_sources(packed, 5) == unpacked


def envelope(**changes: Any) -> dict[str, Any]:
    row = {"type": "permission/preset", "seq": 3, "time": 5, "data": {}} | changes
    return {key: value for key, value in row.items() if value != "missing"}


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"seq": 3.0}, {"time": -5}, {"time": 5.0}, {"data": None}, {"data": 5},
        {"ignorable": True}, {"sourceEventSeqs": [[0, 2]]}, {"surfaceOp": {"anything": 1}},
    ],
)  # fmt: skip
def test_rows_with_a_right_envelope_count(changes: dict[str, Any]) -> None:
    assert normalize_row(envelope(**changes), 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"seq": 2}, {"seq": "3"}, {"seq": True}, {"seq": 3.5}, {"time": 1.5}, {"time": "5"},
        {"time": None}, {"time": True}, {"time": -0.0}, {"time": 2**53}, {"time": 1e300},
        {"type": 5}, {"type": "missing"}, {"data": "missing"}, {"seq": "missing"}, {"x": 1},
        {"ignorable": False}, {"ignorable": 1}, {"sourceEventSeqs": [3]},
        {"type": "session/end-seed", "data": None},
    ],
)  # fmt: skip
def test_rows_with_another_envelope_are_broken(changes: dict[str, Any]) -> None:
    assert not normalize_row(envelope(**changes), 3)


@pytest.mark.parametrize("row", [None, [], "x", 5, True])
def test_rows_that_are_no_objects_are_broken(row: Any) -> None:
    assert not normalize_row(row, 0)

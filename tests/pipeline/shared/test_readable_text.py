"""What of an event is readable, and how a budget is shared out."""

from __future__ import annotations

from typing import Any

import pytest
from dsh_memory.pipeline.shared.readable_text import read_text
from dsh_memory.pipeline.shared.text_budget import clip, share_budget
from dsh_memory.sessionquery.js.text import utf16_length
from hypothesis import given
from hypothesis import strategies as st


def event(kind: str, data: Any, seq: int = 0) -> dict[str, Any]:
    return {"seq": seq, "type": kind, "time": 1, "data": data}


def test_words_calls_and_labels_are_readable_and_nothing_else() -> None:
    content = [
        {"type": "reasoning", "text": "SECRET"},
        {"type": "text", "text": "visible answer"},
        {"type": "tool-call", "name": "bash", "arguments": '{"command":"pwd"}', "id": "SECRET"},
        {"type": "file", "attachment": {"name": "report.txt", "payload": "SECRET"}},
        {"type": "file"},
        {"type": "file", "attachment": {"name": ""}},
        {"type": "image", "attachment": {"payload": "SECRET"}},
        {"type": "replay", "text": "SECRET"},
    ]
    data = {"message": {"content": content, "source": {"state": "SECRET"}}, "stream": ["SECRET"]}
    assert read_text(event("assistant/message", data)) == (
        'visible answer\n[tool call: bash] {"command":"pwd"}\n[file: report.txt]\n'
        "[file: attachment]\n[file: ]\n[image attachment]"
    )


def test_the_message_of_a_user_event_is_its_data() -> None:
    block = {"type": "text", "text": "hello"}
    assert read_text(event("user/message", {"content": [block]})) == "hello"
    assert read_text(event("user/message", {"message": {"content": [block]}})) == ""
    assert read_text(event("system/message", {"message": {"content": [block]}})) == "hello"


def test_results_show_text_without_error_names() -> None:
    data = {
        "message": {"content": [{"type": "text", "text": "no such tool"}]},
        "error": {"name": "SECRET", "code": "SECRET"},
        "meta": "SECRET",
    }
    assert read_text(event("tool/result", data)) == "no such tool"


def test_tool_calls_read_like_their_blocks() -> None:
    data = {"name": "read", "arguments": '{"path":"a"}', "callId": "SECRET"}
    assert read_text(event("tool/call", data)) == '[tool call: read] {"path":"a"}'


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("request/header", {"secret": "SECRET"}),
        ("turn/end", {"reason": {"kind": "error", "error": {"message": "SECRET"}}}),
        ("todo/write", {"todos": [{"content": "SECRET", "status": "x"}]}),
        ("session/title", {"title": "SECRET"}),
        ("odd/array", ["SECRET"]),
        ("odd/text", "SECRET"),
        ("assistant/message", {"message": {"content": "SECRET"}}),
        ("user/message", {"content": [None, 3, "SECRET", {"text": "SECRET"}]}),
    ],
)
def test_everything_else_is_silent(kind: str, data: Any) -> None:
    assert read_text(event(kind, data)) == ""


def test_blocks_keep_their_blanks_and_empty_texts_their_line() -> None:
    content = [{"type": "text", "text": text} for text in (" a ", "", "b\n")]
    assert read_text(event("user/message", {"content": content})) == " a \n\nb\n"


def test_lone_surrogates_are_replaced() -> None:
    content = [{"type": "text", "text": "a\ud800"}, {"type": "text", "text": "\udc00"}]
    assert read_text(event("user/message", {"content": content})) == "a\ufffd\n\ufffd"


def test_the_target_comes_first_then_the_nearest_and_the_earlier_on_a_tie() -> None:
    texts = [(3, "far"), (4, "B" * 70), (5, "T" * 80), (6, "A" * 70), (7, "far")]
    shares = share_budget(texts, target=5, units=100)
    assert [(len(share.text), share.truncated) for share in shares] == [
        (0, True),
        (20, True),
        (80, False),
        (0, True),
        (0, True),
    ]


def test_an_empty_text_is_never_truncated() -> None:
    shares = share_budget([(0, "x" * 200), (1, "")], target=0, units=100)
    assert [share.truncated for share in shares] == [True, False]


def test_a_pair_is_never_split() -> None:
    assert clip("x" * 99 + "😀tail", 100).text == "x" * 99
    assert clip("x" * 98 + "😀", 100) == clip("x" * 98 + "😀", 1000)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), min_size=1),
    st.integers(0, 400),
    st.data(),
)
def test_shares_are_prefixes_within_the_budget(texts: list[str], units: int, data: Any) -> None:
    pairs = list(enumerate(texts))
    target = data.draw(st.integers(0, len(texts) - 1))
    shares = share_budget(pairs, target=target, units=units)
    total = sum(utf16_length(share.text) for share in shares)
    assert total <= units
    assert all(text.startswith(share.text) for text, share in zip(texts, shares, strict=True))
    for text, share in zip(texts, shares, strict=True):
        assert share.truncated == (share.text != text)
    if any(share.truncated for share in shares):
        assert total >= units - 1 or shares[target].text == texts[target]
    whole = sum(map(utf16_length, texts))
    if whole <= units:
        assert [share.text for share in shares] == texts

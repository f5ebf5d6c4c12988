"""Hostile texts and a way to read a note back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from dsh_memory.exporters.note import NoteContent

PAIN = [
    'C# [x]|^:*?"<>/\\',
    "../../x",
    "@user",
    "- a",
    "yes",
    "12:30:45",
    "2026-01-01",
    "null",
    "~",
    "0x1F",
    "1_000",
    "!tag &anchor *alias",
    "{a: b}",
    "key: value # comment",
    "a\n---\nb",
    "---",
    "...",
    "```",
    "``````` text",
    "~~~~\n# heading\n~~~~",
    "````\n```js\n`````",
    "[[link]]",
    "[[a|b]] and ![[embed]]",
    "#tag #nested/tag",
    "![img](http://127.0.0.1/x.png) <img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "%% hidden %%",
    '<% tp.system.clipboard() %> <%* await tp.user.x() %> <%- "x" -%>',
    "```dataviewjs\ndv.pages()\n```",
    "`= this.file.name` `$= dv.current()`",
    "= this.file.name",
    "key:: value",
    "[key:: value] (key:: value) a:::b",
    "$$x^2$$ and $y$",
    "text[^1]\n\n[^1]: note",
    "paragraph ^block-id",
    "> [!danger]- callout\n> text",
    "- [ ] task 2026-01-01",
    "{{title}} {% raw %}",
    "==mark== ~~del~~ **b** __i__",
    "https://example.org and mailto:a@b.c",
    "tab\there\x00nul\x1b[31mesc\x07\x7f\x85\u2028\u2029\ufeff\u200b\u202e",
    "\ufffe\uffff\ufdd0\U0001fffe",
    "lone \ud800 and \udfff, a pair \ud83d\ude00",
    "中" * 300,
    "emoji 👨‍👩‍👧‍👦 é",
    "\\x41 \\u0041 \\",
    "",
    " leading and trailing ",
    "\r\n\r",
    "a" * 1000,
]


@pytest.fixture(params=range(len(PAIN)), ids=lambda index: f"pain{index}")
def pain(request: pytest.FixtureRequest) -> str:
    text: str = PAIN[request.param]
    return text


@pytest.fixture(scope="session")
def fill() -> Callable[..., NoteContent]:
    """Make a note content that has one text in every place that is not ours."""

    def make(text: str, **changes: Any) -> NoteContent:
        page = {
            "source": "dsh",
            "query": text,
            "results": [{"snippet": text, "cwd": text, "seq": 2**53 - 1, "noul": 0.1 + 0.2}],
            "empty": [],
            "nested": {"null": None, "flag": True},
        }
        content = NoteContent(
            kind="recall",
            query=text,
            question=text,
            scope="all",
            cwd=text,
            session_id=text,
            model=text,
            history=f"Recorded.\n{text}\n",
            page=page,
            created=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        )
        return replace(content, **changes)

    return make


@pytest.fixture(scope="session")
def parse_note() -> Callable[[str], tuple[dict[str, Any], str, Any]]:
    """Split a note into its properties, its body, and the value of its JSON block."""

    def parse(text: str) -> tuple[dict[str, Any], str, Any]:
        assert text.startswith("---\n")
        block, body = text[4:].split("\n---\n", 1)
        properties = yaml.safe_load(block)
        match = re.search(r"^(`{3,})json\n(.*?)\n\1$", body, re.DOTALL | re.MULTILINE)
        assert match is not None
        return properties, body, json.loads(match[2])

    return parse


@pytest.fixture(scope="session")
def repaired() -> Callable[[Any], Any]:
    """Replace lone surrogates in a JSON value, independently of the code under test."""

    def repair(value: Any) -> Any:
        if isinstance(value, str):
            raw = value.encode("utf-16-le", "surrogatepass")
            return raw.decode("utf-16-le", "replace")
        if isinstance(value, dict):
            return {repair(key): repair(item) for key, item in value.items()}
        if isinstance(value, list):
            return [repair(item) for item in value]
        return value

    return repair

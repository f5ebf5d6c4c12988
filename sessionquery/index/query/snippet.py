"""The bounded excerpt of a document around its first match (the real engine's rule).

Blank runs become one space, the text is cut to a number of code points with the match about a
third from the left, and each cut end gets an ellipsis that counts.
"""

from __future__ import annotations

import re
from typing import Final

from dsh_memory.sessionquery.js.text import BLANK_CLASS, JS_BLANKS

ELLIPSIS: Final = "…"

_BLANK_RUN = re.compile(BLANK_CLASS + "+")


def make_snippet(text: str, match: int, limit: int) -> str:
    """Return at most `limit` code points of `text` around `match`.

    Args:
        text: The document.
        match: Offset in code points of the first matching token.
        limit: Largest length in code points, at least 1.
    """
    before = _normalized_before(text, match, limit + limit // 3 + 2)
    after = _normalized_after(text, match, limit + 2)
    return _cut(before + after, len(before), limit)


def _normalized_before(text: str, match: int, enough: int) -> str:
    """Return the normalized text before `match`, or its last part if that has `enough` points."""
    reach = 2 * enough
    while True:
        start = max(0, match - reach)
        raw = text[start:match]
        normal = _BLANK_RUN.sub(" ", raw)
        if start == 0:
            return normal.lstrip(" ")
        normal = normal.lstrip(" ")
        if len(normal) >= enough:
            return normal
        reach *= 4


def _normalized_after(text: str, match: int, enough: int) -> str:
    """Return the normalized text from `match` on, or its first part if that has `enough` points."""
    reach = 2 * enough
    while True:
        end = match + reach
        raw = text[match:end]
        normal = _BLANK_RUN.sub(" ", raw.rstrip(JS_BLANKS))
        if end >= len(text) or len(normal) >= enough:
            return normal
        reach *= 4


def _cut(text: str, match: int, limit: int) -> str:
    length = len(text)
    if length <= limit:
        return text
    if limit == 1:
        return ELLIPSIS
    match = min(match, length - 1)
    start = max(0, match - limit // 3)
    prefix = ELLIPSIS if start > 0 else ""
    room = max(1, limit - len(prefix) - 1)
    if match >= start + room:
        start = match - room + 1
    end = min(length, start + room)
    if end < length:
        return (prefix + text[start:end] + ELLIPSIS)[:limit]
    room = limit - len(prefix)
    return prefix + text[max(0, length - room) :]

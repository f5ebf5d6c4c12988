"""Text and number rules of JavaScript, which define the store's format and the engine's limits.

Words: a *unit* is a UTF-16 code unit, a *JS blank* is a character that JavaScript's ``trim()``
removes. Python's ``str.strip()`` and ``\\s`` differ (they also take U+0085 and U+001C-001F, and not
U+FEFF), so they must not be used on session text.
"""

from __future__ import annotations

import re
from typing import Final, TypeGuard

JS_BLANKS: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""Every character that ``trim()`` removes and that ``\\s`` matches in JavaScript."""

BLANK_CLASS: Final = "[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
"""The same as a regular expression class."""

_BLANK_RUN = re.compile(BLANK_CLASS + "+")
_SURROGATE = re.compile("[\ud800-\udfff]")

MAX_SAFE_INTEGER: Final = 2**53 - 1


def trim(text: str) -> str:
    """Remove JS blanks from both ends."""
    return text.strip(JS_BLANKS)


def collapse_blanks(text: str) -> str:
    """Trim, then turn every run of JS blanks into one space."""
    return _BLANK_RUN.sub(" ", text.strip(JS_BLANKS))


def split_blanks(text: str) -> list[str]:
    """Trim, then split at runs of JS blanks; an empty list for blank text."""
    trimmed = text.strip(JS_BLANKS)
    return _BLANK_RUN.split(trimmed) if trimmed else []


def utf16_length(text: str) -> int:
    """Return the length in units: two for each character above U+FFFF."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def clip_utf16(text: str, limit: int) -> str:
    """Return the longest prefix of at most `limit` units that splits no surrogate pair."""
    if limit <= 0:
        return ""
    if len(text) * 2 <= limit or (text.isascii() and len(text) <= limit):
        return text
    if text.isascii():
        return text[:limit]
    head = text[: limit + 1].encode("utf-16-le", "surrogatepass")
    if len(head) <= 2 * limit:
        return text
    cut = head[: 2 * limit]
    if 0xD8 <= cut[-1] <= 0xDB and 0xDC <= head[2 * limit + 1] <= 0xDF:
        cut = cut[:-2]
    return cut.decode("utf-16-le", "surrogatepass")


def replace_surrogates(text: str) -> str:
    """Join surrogate pairs that arrived as two characters; turn each lone surrogate into U+FFFD."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_js_integer(value: object) -> TypeGuard[int | float]:
    """JavaScript's ``Number.isInteger``: 20.0 counts, "20" and True do not."""
    if value.__class__ is int:
        return True
    return isinstance(value, float) and value.is_integer()


def is_safe_integer(value: object) -> TypeGuard[int | float]:
    """JavaScript's ``Number.isSafeInteger``."""
    return is_js_integer(value) and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER


def is_count(value: object) -> TypeGuard[int | float]:
    """A safe integer that is not negative."""
    return is_js_integer(value) and 0 <= value <= MAX_SAFE_INTEGER


def is_finite_number(value: object) -> TypeGuard[int | float]:
    """JavaScript's ``Number.isFinite``: a number (no bool, no text) that is not infinite or NaN."""
    if value.__class__ is int:
        return True
    return isinstance(value, float) and value - value == 0.0

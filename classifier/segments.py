"""Cutting a hit's text into segments by encoded size.

The unit of size everywhere in this package is the byte of JSON-encoded UTF-8: what a text takes
inside the request body, its escapes included, its two quotation marks not (document 003).
"""

from __future__ import annotations

import json
from typing import Final

_SHORT_ESCAPES: Final = frozenset('"\\\b\f\n\r\t')

# The last part of a segment in which a blank is preferred as the place to cut.
_SEARCHED_SHARE: Final = 4


def encode(value: object) -> bytes:
    """Return `value` as the JSON that goes over the wire: compact, not escaped to ASCII.

    Raises:
        ValueError: `value` holds a number that JSON cannot express.
        UnicodeEncodeError: a text holds a lone surrogate; see `well_formed`.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def encoded_size(text: str) -> int:
    """Return the bytes that `text` takes inside a JSON string, without the quotation marks."""
    return len(encode(text)) - 2


def well_formed(text: str) -> str:
    """Return `text` with surrogate pairs joined and every lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def split(text: str, limit: int) -> tuple[str, ...]:
    """Cut `text` into consecutive segments of at most `limit` encoded bytes.

    The segments joined are the text again. Cuts lie between code points; where the last quarter
    of a segment holds white space, it ends after the last one of it. An empty text is one empty
    segment, so that a hit is never left without a score.

    Args:
        text: A well-formed text of any length.
        limit: Encoded bytes, at least 6 (the longest code point: an escaped control character).
    """
    if limit < 6:
        raise ValueError(f"a segment limit of {limit} bytes cannot hold every code point")
    if encoded_size(text) <= limit:
        return (text,)
    segments: list[str] = []
    start = position = size = 0
    blank_end = 0
    while position < len(text):
        char = text[position]
        width = _width(char)
        if size + width > limit:
            end = blank_end if blank_end > start else position
            segments.append(text[start:end])
            start = position = blank_end = end
            size = 0
            continue
        size += width
        position += 1
        if char.isspace() and size > limit - limit // _SEARCHED_SHARE:
            blank_end = position
    segments.append(text[start:])
    return tuple(segments)


def _width(char: str) -> int:
    if char in _SHORT_ESCAPES:
        return 2
    code = ord(char)
    if code < 0x20:
        return 6
    if code < 0x80:
        return 1
    if code < 0x800:
        return 2
    return 3 if code < 0x10000 else 4

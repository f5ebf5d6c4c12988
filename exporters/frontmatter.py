"""YAML front matter that YAML 1.1 and YAML 1.2 readers understand alike.

Every string is double-quoted and on one line, so that nothing is taken for a number, a date, a
boolean, a comment or the end of the front matter. The escapes ``\\xNN``, ``\\uNNNN`` and
``\\UNNNNNNNN`` exist in both versions of YAML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dsh_memory.exporters.inert import ACTIVE
from dsh_memory.exporters.wellformed import well_formed

_UNSAFE = re.compile(
    '["\\\\\x00-\x1f\x7f-\xa0\xad\u061c\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff'
    "\ufdd0-\ufdef\ufff0-\uffff]"
    "|[\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U000e0000-\U000e0fff\U000ffffe-\U0010ffff]"
)
"""What must not stand literally: syntax, controls, breaks, odd blanks, marks, non-characters."""

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def front_matter(properties: Mapping[str, str | int]) -> str:
    """Return the block from ``---`` to ``---`` with a final newline.

    Args:
        properties: Names of letters and underscores; values are strings or whole numbers.
    """
    lines = [f"{name}: {_scalar(value)}" for name, value in properties.items()]
    return "\n".join(["---", *lines, "---", ""])


def quoted(text: str) -> str:
    """Return `text` as one double-quoted YAML scalar that parses back to the same text.

    Lone surrogates become U+FFFD first. Of each sequence that a note program could act on without
    parsing YAML (``<%``, ``::``, ``[[`` ...) the last character is escaped.
    """
    escaped = _UNSAFE.sub(lambda match: _escape(match.group()), well_formed(text))
    return '"' + ACTIVE.sub(lambda match: _escape(match.group()), escaped) + '"'


def _scalar(value: str | int) -> str:
    return quoted(value) if isinstance(value, str) else str(value)


def _escape(character: str) -> str:
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

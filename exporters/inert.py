"""Recorded text that Obsidian and its plugins show and never obey.

Two layers. First, all history stands in fenced code blocks, longer than any run of the fence
character inside: no link, tag, embed, HTML, comment, math, footnote, block id, callout or query
block is live there. Second, some programs read a note's raw text and do not care about fences:
Templater runs ``<% %>`` in new notes, Dataview takes ``key:: value`` from code blocks and evaluates
a code block that begins with ``=`` or ``$=``. So the sequences that start such things are broken
up, and a block always begins with words of our own.
"""

from __future__ import annotations

import json
import re
from typing import Any

from dsh_memory.exporters.wellformed import well_formed, well_formed_json

ACTIVE = re.compile(r"(?<=<)%|(?<=%)[>%]|(?<=:):|(?<=\[)\[|(?<=\{)[{%]|(?<=%)\}|(?<=\$)[$=]")
"""The last character of each sequence that a program may act on outside Markdown's rules."""

_BREAK = "\u200b"
"""Zero-width space: parts such a sequence without changing how it looks."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_NEWLINE = re.compile("\r\n?|[\u2028\u2029]")
_JSON_ESCAPED = re.compile("[<>`\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def fenced(text: str, language: str) -> str:
    """Return `text` in a fence of backticks that is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def inert_text(text: str) -> str:
    """Return history for a fenced block: same look, nothing that a program could act on.

    Line ends become ``\\n``, control characters their Unicode pictures, lone surrogates U+FFFD.
    """
    unified = _NEWLINE.sub("\n", well_formed(text))
    pictured = _CONTROL.sub(lambda match: _picture(match.group()), unified)
    return ACTIVE.sub(lambda match: _BREAK + match.group(), pictured)


def inert_json(value: Any) -> str:
    """Return `value` as indented JSON that parses back to the same value.

    Lone surrogates become U+FFFD first. Characters that could end a fence or start something
    live only occur inside strings, where JSON may spell them ``\\uNNNN``.
    """
    text = json.dumps(well_formed_json(value), ensure_ascii=False, indent=2, allow_nan=False)
    escaped = _JSON_ESCAPED.sub(lambda match: _json_escape(match.group()), text)
    return ACTIVE.sub(lambda match: _json_escape(match.group()), escaped)


def _json_escape(character: str) -> str:
    return f"\\u{ord(character):04x}"


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"

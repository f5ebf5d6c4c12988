"""Case-insensitive literal matching as a JavaScript regular expression with the flags ``iu``.

That is Unicode's *simple* case folding: one character stays one character. ``re.IGNORECASE`` and
``str.casefold`` both differ (the latter turns ``ß`` into ``ss``), so the folding is made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dsh_memory.sessionquery.js.text import BLANK_CLASS, split_blanks

_SIMPLE_ONLY: Final = {0x1FD3: 0x0390, 0x1FE3: 0x03B0, 0xFB05: 0xFB06}
"""Simple foldings of characters whose full folding is longer and that have no lower case."""


class _SimpleFolding(dict[int, int]):
    """Maps code points on demand, for ``str.translate``."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        folded = character.casefold()
        if len(folded) == 1:
            target = ord(folded)
        elif code in _SIMPLE_ONLY:
            target = _SIMPLE_ONLY[code]
        else:
            lower = character.lower()
            target = ord(lower) if len(lower) == 1 else code
        self[code] = target
        return target


_FOLDING: Final = _SimpleFolding()


def simple_fold(text: str) -> str:
    """Fold every character; the length stays the same."""
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def literal_matcher(text: str) -> Callable[[str], bool]:
    """Return a function that tells whether a text contains `text` literally.

    Case is ignored (simple folding); each run of JS blanks in `text` matches any run of them.
    `text` must not be blank.
    """
    parts = [simple_fold(part) for part in split_blanks(text)]
    if len(parts) == 1:
        needle = parts[0]
        return lambda candidate: needle in simple_fold(candidate)
    pattern = re.compile((BLANK_CLASS + "+").join(map(re.escape, parts)))
    return lambda candidate: pattern.search(simple_fold(candidate)) is not None

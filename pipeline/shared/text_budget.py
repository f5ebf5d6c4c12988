"""Dividing a text budget over a window of events: the target first, then its nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsh_memory.sessionquery.js.text import clip_utf16, utf16_length


@dataclass(frozen=True, slots=True)
class Clipped:
    """A text cut to a number of UTF-16 units, never inside a surrogate pair."""

    text: str
    truncated: bool


def clip(text: str, units: int) -> Clipped:
    """Return the longest prefix of at most `units` UTF-16 units."""
    head = clip_utf16(text, units)
    return Clipped(head, len(head) < len(text))


def share_budget(texts: Sequence[tuple[int, str]], *, target: int, units: int) -> list[Clipped]:
    """Cut ``(seq, text)`` pairs to `units` UTF-16 units in all, in the order given.

    The target takes what it needs first, then the others by distance from it, the earlier first on
    a tie (document 000). A text for which nothing is left is empty, and truncated if it had any.
    """
    order = sorted(
        range(len(texts)), key=lambda index: (abs(texts[index][0] - target), texts[index][0])
    )
    shares = [Clipped("", False)] * len(texts)
    remaining = units
    for index in order:
        share = clip(texts[index][1], remaining)
        remaining -= utf16_length(share.text)
        shares[index] = share
    return shares

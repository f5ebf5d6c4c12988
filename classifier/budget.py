"""How large a request may be, and what is left of it for the excerpts.

Document 003: the encoded bytes of the whole body, model name and escapes included, stand in for
tokens, 256 of the window are reserved, and a question that leaves too little room fails before
any request. Bytes overestimate tokens, so a body inside the budget fits into the context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dsh_memory.classifier.errors import JEV_BUDGET, JevError
from dsh_memory.classifier.segments import encode, encoded_size
from dsh_memory.classifier.wording import ITEM_TEXT_LIMIT, state
from dsh_memory.runtime.endpoint import Endpoint

RESERVED: Final = 256
"""Units of the context window that no request uses."""

BODY_LIMIT: Final = 65_536
"""Bytes that a System One server accepts as a body at most."""

MAX_ITEMS: Final = 64
"""Questions that a System One server accepts in one request at most."""

SEGMENT_LIMIT: Final = 1024
"""Encoded bytes of one segment at most."""

MIN_ROOM: Final = 128
"""Encoded bytes that must be left for a segment; with less, nothing is sent."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The sizes that hold for every request of one run, in encoded bytes.

    Attributes:
        body: The whole body at most.
        envelope: A body without any item: model, state, and the frame around the items.
        segment: One segment at most.
    """

    body: int
    envelope: int
    segment: int


def item_id(position: int) -> str:
    """Return the key of the item at `position` of its request, counted from 0."""
    return f"item_{position}"


def item_size(position: int, text_size: int) -> int:
    """Return what an item adds to a body, the comma before it included.

    Args:
        position: Its place in its request, from 0.
        text_size: Encoded bytes of its instructions.
    """
    frame = '"":{"type":"noul","instructions":""}'
    comma = 0 if position == 0 else 1
    return len(frame) + len(item_id(position)) + text_size + comma


def body(model: str, question: str, items: dict[str, dict[str, str]]) -> bytes:
    """Return the exact bytes of a request."""
    return encode({"model": model, "state": state(question), "questions": items})


def plan(endpoint: Endpoint, question: str) -> Budget:
    """Return the sizes for a question, or refuse it.

    Raises:
        JevError: ``JEV_BUDGET`` when fewer than 128 bytes would be left for an excerpt.
    """
    limit = min(endpoint.context_window - RESERVED, BODY_LIMIT)
    envelope = len(body(endpoint.model, question, {}))
    room = limit - envelope - item_size(0, ITEM_TEXT_LIMIT)
    if room < MIN_ROOM:
        fitting = encoded_size(question) - (MIN_ROOM - room)
        raise JevError(
            JEV_BUDGET,
            f"The question takes {encoded_size(question)} bytes and leaves {max(room, 0)} of the "
            f"{limit} that a context window of {endpoint.context_window} allows; an excerpt needs "
            f"{MIN_ROOM}. Questions of up to {max(fitting, 0)} bytes fit.",
        )
    return Budget(body=limit, envelope=envelope, segment=min(SEGMENT_LIMIT, room))

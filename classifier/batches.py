"""Packing the segments of all hits into as few requests as the budget allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dsh_memory.classifier.budget import MAX_ITEMS, Budget, body, item_id, item_size, plan
from dsh_memory.classifier.errors import JEV_BUDGET, JevError
from dsh_memory.classifier.segments import encoded_size, split
from dsh_memory.classifier.wording import ITEM_TEXT_LIMIT, instructions
from dsh_memory.runtime.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Batch:
    """One request, ready to be sent.

    Attributes:
        content: The exact bytes of the body; what was budgeted is what is sent.
        hits: For each item, in order, the index of the text that its segment belongs to.
    """

    content: bytes
    hits: tuple[int, ...]


def pack(question: str, texts: Sequence[str], endpoint: Endpoint) -> tuple[Batch, ...]:
    """Cut the texts and fill requests greedily in the given order.

    The segments of one text may lie in two requests; item numbers restart in each.

    Args:
        question: The complete question, well-formed; every request carries it.
        texts: Well-formed texts of any length.
        endpoint: Model name and context window.

    Raises:
        JevError: ``JEV_BUDGET`` when the question leaves no room, before anything is sent.
    """
    budget = plan(endpoint, question)
    batches: list[Batch] = []
    items: dict[str, dict[str, str]] = {}
    hits: list[int] = []
    size = budget.envelope

    def close() -> None:
        batches.append(Batch(body(endpoint.model, question, items), tuple(hits)))

    for hit, text in _items(texts, budget):
        text_size = encoded_size(text)
        full = len(hits) == MAX_ITEMS or size + item_size(len(hits), text_size) > budget.body
        if hits and full:
            close()
            items, hits, size = {}, [], budget.envelope
        size += item_size(len(hits), text_size)
        items[item_id(len(hits))] = {"type": "noul", "instructions": text}
        hits.append(hit)
    if hits:
        close()
    return tuple(batches)


def _items(texts: Iterable[str], budget: Budget) -> Iterator[tuple[int, str]]:
    for hit, text in enumerate(texts):
        segments = split(text, budget.segment)
        for part, segment in enumerate(segments, 1):
            item = instructions(segment, part, len(segments))
            if len(item) - len(segment) > ITEM_TEXT_LIMIT:
                raise JevError(
                    JEV_BUDGET,
                    f"Text {hit + 1} is too long to be judged: {len(text)} characters would be "
                    f"{len(segments)} parts.",
                )
            yield hit, item

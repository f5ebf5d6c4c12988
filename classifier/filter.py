"""Stage 3: how relevant each hit is to the complete question, as a local decision model sees it.

Scores are the model's view of the texts it was given, nothing more: no search scores, and no
statement about the rest of a transcript (document 003).
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import anyio.to_thread
from dsh_memory.classifier.batches import Batch, pack
from dsh_memory.classifier.errors import JEV_CLOUD_MODEL, JEV_QUESTION_REQUIRED, JevError, visible
from dsh_memory.classifier.segments import well_formed
from dsh_memory.runtime.endpoint import Endpoint

if TYPE_CHECKING:
    from dsh_memory.classifier.client import SystemOneClient

THRESHOLD: Final = 0.5
"""A hit whose score is at least this is kept."""

TIMEOUT: Final = 30.0
"""Seconds that one model request may take, its whole answer included."""

Progress = Callable[[int, int], None]
"""Called with the model requests that are done and how many there are: first with 0 done."""


@dataclass(frozen=True, slots=True)
class FilterOutcome:
    """The scores of one page.

    Attributes:
        scores: For each text, in order, the largest noul of its segments, 0..1.
        segments: How many segments were judged.
        requests: How many model requests it took.
        input_tokens: What the server reports to have read, summed over the requests.
        elapsed_ms: Milliseconds from the first request to the last answer.
    """

    scores: tuple[float, ...]
    segments: int
    requests: int
    input_tokens: int
    elapsed_ms: int


async def score_texts(
    question: str,
    texts: Sequence[str],
    *,
    endpoint: Endpoint,
    timeout: float = TIMEOUT,
    progress: Progress | None = None,
) -> FilterOutcome:
    """Score every text against the question.

    Every request carries the complete question; texts of any length are cut into segments. Nothing
    is sent when there is no text. The first failure ends the run; there is no retry and no partial
    outcome. Cancellation closes the connection at once.

    Args:
        question: The complete user question; lone surrogates count as U+FFFD.
        texts: What is judged, usually the snippets of one page in native order.
        endpoint: The loopback server, its model and the context window.
        timeout: Seconds for each request.
        progress: Told after each request.

    Raises:
        JevError: ``JEV_QUESTION_REQUIRED``, ``JEV_CLOUD_MODEL`` and ``JEV_BUDGET`` before anything
            is sent; any other ``JEV_*`` code for a failed request, which the message numbers when
            there are several.
        ConfigError: ``CONFIG_BASE_URL`` when the endpoint is no allowed loopback root.
    """
    if not question.strip():
        raise JevError(
            JEV_QUESTION_REQUIRED, "Filtering needs the complete question, but it is missing."
        )
    _refuse_cloud(endpoint.model)
    if not texts:
        return FilterOutcome((), 0, 0, 0, 0)
    batches = pack(well_formed(question), [well_formed(text) for text in texts], endpoint)
    best: list[float | None] = [None] * len(texts)
    tokens = 0
    if progress is not None:
        progress(0, len(batches))
    async with await _connect(endpoint, timeout) as client:
        started = time.monotonic()
        for number, batch in enumerate(batches, 1):
            nouls, read = await _ask(client, batch, number, len(batches))
            tokens += read
            for hit, noul in zip(batch.hits, nouls, strict=True):
                known = best[hit]
                best[hit] = noul if known is None else max(known, noul)
            if progress is not None:
                progress(number, len(batches))
        elapsed = time.monotonic() - started
    return FilterOutcome(
        scores=tuple(cast("list[float]", best)),
        segments=sum(len(batch.hits) for batch in batches),
        requests=len(batches),
        input_tokens=tokens,
        elapsed_ms=round(elapsed * 1000),
    )


async def warm_up(endpoint: Endpoint, *, timeout: float) -> None:
    """Send one minimal scoring request, so that the server loads the model.

    Args:
        endpoint: The loopback server, its model and the context window.
        timeout: Seconds that loading may take.

    Raises:
        JevError: As `score_texts`.
    """
    await score_texts("Ready?", ["Ready."], endpoint=endpoint, timeout=timeout)


async def _connect(endpoint: Endpoint, timeout: float) -> SystemOneClient:
    # In a thread, because the SDK takes a second to import and cancellation should not wait.
    module = await anyio.to_thread.run_sync(
        importlib.import_module, "dsh_memory.classifier.client", abandon_on_cancel=True
    )
    return cast("SystemOneClient", module.SystemOneClient(endpoint, timeout=timeout))


async def _ask(
    client: SystemOneClient, batch: Batch, number: int, total: int
) -> tuple[tuple[float, ...], int]:
    try:
        answer = await client.ask(batch.content, len(batch.hits))
    except JevError as error:
        raise error.located(number, total) from error.__cause__
    return answer.nouls, answer.input_tokens


def _refuse_cloud(model: str) -> None:
    if model.strip().lower().endswith((":cloud", "-cloud")):
        raise JevError(
            JEV_CLOUD_MODEL,
            f"The model {visible(model, 60)!r} is a cloud model: the local server would send the "
            "texts to a remote service.",
        )

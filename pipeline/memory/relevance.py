"""The relevance stage: which hits of the page the local model keeps (document 003)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from dsh_memory.pipeline.memory.results import JevReport, SearchHit
from dsh_memory.pipeline.shared.engine_port import EndpointSource

Selection = Literal["kept", "filtered"]


async def judge(
    hits: Sequence[SearchHit],
    *,
    question: str,
    selection: Selection,
    model: str,
    configured_window: int | None,
    service: EndpointSource,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[SearchHit], JevReport]:
    """Score the snippets of `hits` and return the selected part in unchanged order.

    Only the bounded snippets are sent. Without hits neither the service nor the model is asked.

    Raises:
        DshMemoryError: The service or the scoring failed (``OLLAMA_*``, ``JEV_*``); nothing is ever
            returned unfiltered instead.
    """
    from dsh_memory.classifier.filter import THRESHOLD, score_texts

    if not hits:
        window = {} if configured_window is None else {"context_window": configured_window}
        return [], _report(model, THRESHOLD, selection, window, hits=0, kept=0)
    endpoint = await service.endpoint()
    outcome = await score_texts(
        question, [hit.snippet for hit in hits], endpoint=endpoint, progress=progress
    )
    scored = [
        hit.model_copy(update={"noul": score})
        for hit, score in zip(hits, outcome.scores, strict=True)
    ]
    kept = [hit for hit, score in zip(scored, outcome.scores, strict=True) if score >= THRESHOLD]
    rest = [hit for hit, score in zip(scored, outcome.scores, strict=True) if score < THRESHOLD]
    report = _report(
        endpoint.model,
        THRESHOLD,
        selection,
        {
            "context_window": endpoint.context_window,
            "segments": outcome.segments,
            "requests": outcome.requests,
            "input_tokens": outcome.input_tokens,
            "elapsed_ms": outcome.elapsed_ms,
        },
        hits=len(hits),
        kept=len(kept),
    )
    return (kept if selection == "kept" else rest), report


def _report(
    model: str,
    threshold: float,
    selection: Selection,
    measured: dict[str, Any],
    *,
    hits: int,
    kept: int,
) -> JevReport:
    counts = {"segments": 0, "requests": 0, "input_tokens": 0, "elapsed_ms": 0}
    return JevReport(
        model=model,
        threshold=threshold,
        selection=selection,
        reviewed=hits,
        kept=kept,
        filtered=hits - kept,
        **(counts | measured),
    )

"""How well a decision model tells evidence from mere matches, through the product's own filter.

    python benchmarks/relevance.py --base-url http://127.0.0.1:11434 --model nimble

works with any System One endpoint on this machine. Every group of the labelled file (one literal
query, one question, 6 to 10 snippets that all contain the query) is scored exactly as a search
page is: the same wording, segments, budget and client.

AUC is the chance that a relevant snippet scores above an irrelevant one (0.5 is guessing): pooled
over all pairs it also punishes a scale that shifts between questions, per group it does not. The
reliability table tells whether a noul can be read as a probability.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from dsh_memory.classifier.filter import THRESHOLD, TIMEOUT, FilterOutcome, score_texts
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.runtime.errors import DshMemoryError

DATA = Path(__file__).parent / "data" / "relevance-dev.jsonl"
BINS = 10


@dataclass(frozen=True, slots=True)
class Pair:
    """One labelled snippet."""

    group: str
    question: str
    snippet: str
    relevant: bool


@dataclass(frozen=True, slots=True)
class Scored:
    """One labelled snippet and its noul."""

    pair: Pair
    noul: float


def read_pairs(path: Path) -> list[Pair]:
    """Read the labelled file, one JSON object a line."""
    pairs: list[Pair] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            pairs.append(Pair(row["group"], row["question"], row["snippet"], row["relevant"]))
    return pairs


def grouped(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """Return the pairs by group, both in file order."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.group, []).append(pair)
    return groups


async def score(
    pairs: Sequence[Pair], endpoint: Endpoint, timeout: float
) -> tuple[list[Scored], list[FilterOutcome]]:
    """Score every group as one page of a search."""
    scored: list[Scored] = []
    outcomes: list[FilterOutcome] = []
    groups = grouped(pairs)
    for number, members in enumerate(groups.values(), 1):
        if sys.stderr.isatty():
            print(f"\rgroup {number} of {len(groups)}", end="", file=sys.stderr, flush=True)
        outcome = await score_texts(
            members[0].question,
            [pair.snippet for pair in members],
            endpoint=endpoint,
            timeout=timeout,
        )
        scored += [Scored(*item) for item in zip(members, outcome.scores, strict=True)]
        outcomes.append(outcome)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return scored, outcomes


def auc(scored: Sequence[Scored]) -> float:
    """Return the chance that a relevant snippet outranks an irrelevant one; ties count half."""
    positive = [item.noul for item in scored if item.pair.relevant]
    negative = [item.noul for item in scored if not item.pair.relevant]
    if not positive or not negative:
        return math.nan
    won = sum((high > low) + 0.5 * (high == low) for high in positive for low in negative)
    return won / (len(positive) * len(negative))


def report(scored: Sequence[Scored], outcomes: Sequence[FilterOutcome]) -> list[str]:
    """Return the lines of the report."""
    kept = [item for item in scored if item.noul >= THRESHOLD]
    relevant = [item for item in scored if item.pair.relevant]
    true_kept = sum(item.pair.relevant for item in kept)
    by_group: dict[str, list[Scored]] = {}
    for item in scored:
        by_group.setdefault(item.pair.group, []).append(item)
    aucs = {name: auc(members) for name, members in by_group.items()}
    milliseconds = sum(outcome.elapsed_ms for outcome in outcomes)
    return [
        f"snippets            {len(scored)}, {len(relevant)} relevant, {len(by_group)} groups",
        f"pooled AUC          {auc(scored):.3f}",
        f"per-group AUC       {sum(aucs.values()) / len(aucs):.3f} (mean)",
        f"precision at {THRESHOLD}    {_share(true_kept, len(kept))} ({true_kept} of {len(kept)})",
        f"recall at {THRESHOLD}       {_share(true_kept, len(relevant))} "
        f"({true_kept} of {len(relevant)})",
        f"kept at {THRESHOLD}         {_share(len(kept), len(scored))}",
        f"requests            {sum(outcome.requests for outcome in outcomes)}, "
        f"{sum(outcome.input_tokens for outcome in outcomes)} input tokens reported",
        f"time                {milliseconds / 1000:.1f} s, "
        f"{milliseconds / len(scored):.0f} ms a snippet",
        "",
        "reliability         noul        snippets  mean noul  relevant",
        *_reliability(scored),
        "",
        "per-group AUC       " + "  ".join(f"{name} {value:.2f}" for name, value in aucs.items()),
    ]


def _reliability(scored: Sequence[Scored]) -> list[str]:
    lines: list[str] = []
    for index in range(BINS):
        members = [item for item in scored if min(int(item.noul * BINS), BINS - 1) == index]
        low, high = index / BINS, (index + 1) / BINS
        if members:
            mean = sum(item.noul for item in members) / len(members)
            share = sum(item.pair.relevant for item in members) / len(members)
            figures = f"{len(members):8}  {mean:9.2f}  {share:8.2f}"
        else:
            figures = f"{0:8}  {'-':>9}  {'-':>8}"
        lines.append(f"{'':20}{low:.1f}-{high:.1f}   {figures}")
    return lines


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def main() -> int:
    """Parse the command line, score, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=DATA, metavar="FILE.jsonl")
    parser.add_argument("--base-url", required=True, help="loopback root, http://127.0.0.1:11434")
    parser.add_argument("--model", required=True)
    parser.add_argument("--context-window", type=int, default=8192)
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds a request")
    options = parser.parse_args()
    endpoint = Endpoint(options.base_url, options.model, options.context_window)
    pairs = read_pairs(options.file)
    try:
        scored, outcomes = anyio.run(score, pairs, endpoint, options.timeout)
    except DshMemoryError as error:
        print(f"\n{error.code}: {error.message}\n{error.hint or ''}", file=sys.stderr)
        return 1
    print("\n".join(report(scored, outcomes)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

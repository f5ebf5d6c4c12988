"""A page of ``recall`` as text."""

from __future__ import annotations

from typing import Final

from dsh_memory.pipeline.recall.requests import RecallHit, RecallResult
from dsh_memory.pipeline.shared.notices import NOTICE, left_out, short_title
from dsh_memory.pipeline.shared.timestamps import moment

_SCOPES: Final = {
    "project": "the sessions of this project",
    "all": "the sessions of all projects",
    "session": "one session",
}


def render_recall(result: RecallResult) -> str:
    """Notice, count, one card a hit, hint and cursor."""
    number = len(result.results)
    matches = "1 match" if number == 1 else f"{number} matches"
    lines = [NOTICE, f"Recall: {matches} in {_SCOPES[result.scope]}"]
    if result.hint is not None:
        lines.append(f"Hint: {result.hint}")
    for index, hit in enumerate(result.results, 1):
        lines += ["", *_card(index, hit)]
    if result.excluded_echoes:
        lines += ["", f"Hits left out as echoes of this memory: {result.excluded_echoes}"]
    lines += left_out(result)
    if result.next_cursor is not None:
        lines += [
            "",
            "There are more matches. Repeat all arguments unchanged and add this cursor: "
            f"{result.next_cursor}",
        ]
    return "\n".join(lines)


def _card(index: int, hit: RecallHit) -> list[str]:
    echo = ["   [echo: a call or answer of this memory itself]"] if hit.echo else []
    return [
        f"{index}. {short_title(hit.title) or '(untitled)'} | {moment(hit.created_at)}",
        f"   session {hit.session_id} | seq {hit.seq} | {hit.type} | {hit.surface} | "
        f"{moment(hit.time)}",
        f"   cwd: {hit.cwd or '(unset)'}",
        *echo,
        f"   {hit.snippet}",
    ]

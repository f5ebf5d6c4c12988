"""The one renderer: results, status, help and errors as plain text of bounded size.

Every text with history begins with the notice that history is data. Limits are UTF-16 units, as in
document 000: search below 40,000, read below 35,000, help below 2,000, an error below 500. Nothing
here knows terminals: interfaces make control characters visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dsh_memory.pipeline.help import render_help
from dsh_memory.pipeline.memory.results import JevReport, ReadResult, SearchHit, SearchResult
from dsh_memory.pipeline.shared.notices import LISTED, NOTICE
from dsh_memory.pipeline.shared.timestamps import moment
from dsh_memory.pipeline.status.render import render_status
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.sessionquery.js.text import clip_utf16, utf16_length

__all__ = ["render_error", "render_help", "render_read", "render_search", "render_status"]

SEARCH_UNITS: Final = 39_900
ERROR_UNITS: Final = 490

ID_UNITS: Final = 128
TYPE_UNITS: Final = 40
CWD_UNITS: Final = 200

_SCOPES: Final = {
    "all": "all main sessions",
    "cwd": "main sessions of one directory",
    "session": "one session",
}


def render_search(result: SearchResult) -> str:
    """Return a page of search or review as text."""
    head = [NOTICE, _count(result)]
    if result.jev is not None:
        head.append(_jev(result.jev))
    tail = _tail(result)
    fixed = utf16_length("\n".join([*head, *tail]))
    blocks: list[str] = []
    if result.results:
        allowance = (SEARCH_UNITS - fixed) // len(result.results) - 2
        blocks = [
            "\n" + _hit(number, hit, allowance) for number, hit in enumerate(result.results, 1)
        ]
    return "\n".join([*head, *blocks, *tail])


def render_read(result: ReadResult) -> str:
    """Return a window of one session as text."""
    lines = [
        NOTICE,
        f"Session {_cut(result.session_id, ID_UNITS)} | target seq {result.target_seq} | "
        f"window {result.start_seq}-{result.end_seq} | created {moment(result.created_at)}",
        f"cwd: {_cwd(result.cwd, CWD_UNITS)}",
        f"Inherited events: {result.inherited_event_count}. Left out: reasoning, attachment "
        "contents, streams and replayed data, lifecycle and control data.",
    ]
    for event in result.events:
        target = " (target)" if event.seq == result.target_seq else ""
        kind = _cut(event.type, TYPE_UNITS)
        lines.append(f"\n[{event.seq}] {kind}{target} {moment(event.time)}")
        lines.append(event.text or "(no recalled text)")
        if event.text_truncated:
            lines.append(
                "[truncated by the text budget: read this seq with before 0 and after 0, "
                "or with a larger max_chars]"
            )
    return "\n".join(lines)


def render_error(error: DshMemoryError) -> str:
    """Return code, message and remedy; what is too long is cut."""
    hint = "" if error.hint is None else "\n" + _cut(error.hint, 180)
    room = ERROR_UNITS - utf16_length(hint)
    return _cut(f"{_cut(error.code, 80)}: {error.message}", room) + hint


def _count(result: SearchResult) -> str:
    number = len(result.results)
    matches = "1 match" if number == 1 else f"{number} matches"
    where = f"in {_SCOPES[result.scope]} [{result.scope}]"
    if result.jev is not None and result.jev.selection == "filtered":
        return f"DSH session review: {matches} filtered out, {where}"
    return f"DSH session search: {matches} {where}"


def _jev(jev: JevReport) -> str:
    return (
        f"Jev ({_cut(jev.model, 200)}): {jev.reviewed} reviewed, {jev.kept} kept, "
        f"{jev.filtered} filtered out at {jev.threshold:g}. Scores are this model's view of the "
        "snippets; they are no search scores and guarantee nothing about a whole session."
    )


def _hit(number: int, hit: SearchHit, allowance: int) -> str:
    first = (
        f"{number}. Session {_cut(hit.session_id, ID_UNITS)} | seq {hit.seq} | "
        f"{_cut(hit.type, TYPE_UNITS)} | {hit.surface} | {moment(hit.time)}"
    )
    marks = []
    if hit.noul is not None:
        marks.append(f"Jev score: {hit.noul:.3f}")
    if hit.echo:
        marks.append("[echo: a call or answer of this memory itself]")
    shortened = "[snippet shortened: fetch_session or memory-read has the original]"
    used = utf16_length("\n".join([first, *marks, shortened])) + len("\ncwd: \n\n")
    room = max(allowance - used, 0)
    cwd = _cwd(hit.cwd, min(CWD_UNITS, max(room // 3, 12)))
    snippet = _cut(hit.snippet, max(room - utf16_length(cwd), 0))
    lines = [first, f"cwd: {cwd}", *marks, snippet]
    if hit.snippet_truncated or snippet != hit.snippet:
        lines.append(shortened)
    return "\n".join(lines)


def _tail(result: SearchResult) -> list[str]:
    lines: list[str] = []
    if not result.results:
        lines.append("There is no eligible match in this page.")
    if result.excluded_subagent_sessions:
        lines.append(
            f"Hits left out because their session is a subagent's: "
            f"{result.excluded_subagent_sessions}"
        )
    if result.excluded_echoes:
        lines.append(f"Hits left out as echoes of this memory: {result.excluded_echoes}")
    unreadable = [
        f"Unreadable session left out: {_cut(item.path, 200)} ({_cut(item.reason, 150)})"
        for item in result.unreadable_sessions or ()
    ]
    lines += _some(unreadable, "unreadable sessions")
    lines += _some([_cut(text, 300) for text in result.diagnostics or ()], "diagnostics")
    if result.note_path is not None:
        lines.append(f"Note: {_cut(result.note_path, 1000)}")
    if result.next_cursor is not None:
        lines.append(
            "There are more matches. Repeat all arguments unchanged and add this cursor: "
            f"{result.next_cursor}"
        )
    return ["", *lines] if lines else []


def _some(lines: Sequence[str], what: str) -> list[str]:
    more = len(lines) - LISTED
    return [*lines[:LISTED], *([f"... and {more} more {what}"] if more > 0 else [])]


def _cwd(cwd: str | None, units: int) -> str:
    return "(unset)" if cwd is None else _cut(cwd, units)


def _cut(text: str, units: int) -> str:
    if utf16_length(text) <= units:
        return text
    return clip_utf16(text, units - 1) + "…" if units > 0 else ""

"""The answers of document 002's five tools as text; each begins with the historical-data notice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from dsh_memory.pipeline.session_tools.results import (
    Descendant,
    EventMatch,
    EventReadAnswer,
    EventSearchAnswer,
    EventTraceAnswer,
    LineageSession,
    Neighbour,
    SessionReference,
    SessionSearchAnswer,
    SessionTraceAnswer,
)
from dsh_memory.pipeline.shared.notices import NOTICE, left_out, short_title
from dsh_memory.pipeline.shared.timestamps import moment

_MORE: Final = "There are more matches than these; narrow the search to see others."


def render_session_search(answer: SessionSearchAnswer) -> str:
    """Sessions with their strongest event."""
    lines = [NOTICE, f"Session search: {_counted(len(answer.results), 'session')}"]
    for number, match in enumerate(answer.results, 1):
        lines += [
            "",
            f"{number}. {_session(match)}",
            f"   created {moment(match.created_at)} | parent {match.parent_session_id or 'none'} | "
            f"{_availability(match.availability)}",
            f"   {_event(match.best_match)}",
            f"   {match.best_match.snippet}",
        ]
    return _joined(lines, answer)


def render_event_search(answer: EventSearchAnswer) -> str:
    """Matching events of one session."""
    lines = [
        NOTICE,
        f"{_session(answer.session)}: {_counted(len(answer.results), 'matching event')}",
    ]
    for number, match in enumerate(answer.results, 1):
        lines += [f"{number}. {_event(match)}", f"   {match.snippet}"]
    return _joined(lines, answer)


def render_session_trace(answer: SessionTraceAnswer) -> str:
    """Ancestors and descendants."""
    lines = [NOTICE, f"Session {_lineage(answer.session)}", "", "Ancestors, nearest first:"]
    lines += [f"- {_lineage(ancestor)}" for ancestor in answer.ancestors]
    if not answer.complete:
        lines.append("- (the next one is missing or not visible)")
    elif not answer.ancestors:
        lines.append("- none: it is a root session")
    lines += ["", "Descendants:", *(_tree(answer.descendants, 0) or ["- none"])]
    return "\n".join(lines)


def render_event_trace(answer: EventTraceAnswer) -> str:
    """Replacements and sources of one event."""
    target = answer.target
    return "\n".join(
        [
            NOTICE,
            _session(answer.session),
            f"Target: seq {target.seq} | {target.type} | {target.surface} | {moment(target.time)}",
            f"Replaced by: {'none' if answer.replaced_by is None else answer.replaced_by}",
            f"Replacement chain: {_seqs(answer.replacement_chain)}",
            f"It replaced: {_seqs(answer.replaced_event_seqs)}",
            f"It cites as sources: {_seqs(answer.source_event_seqs)}",
            f"Cited by: {_seqs(answer.derived_event_seqs)}",
        ]
    )


def render_event_read(answer: EventReadAnswer) -> str:
    """One whole event, its neighbours in short."""
    lines = [
        NOTICE,
        _session(answer.session),
        f"Inherited events: {answer.inherited_event_count}",
        f"Event {answer.target.get('seq')}:",
        json.dumps(answer.target, ensure_ascii=False, indent=1),
    ]
    for title, neighbours in (("Before", answer.before), ("After", answer.after)):
        if neighbours:
            lines += ["", f"{title}:", *(_neighbour(neighbour) for neighbour in neighbours)]
    return "\n".join(lines)


def _joined(lines: list[str], answer: SessionSearchAnswer | EventSearchAnswer) -> str:
    tail = [_MORE] if answer.truncated else []
    tail += left_out(answer)
    return "\n".join([*lines, "", *tail] if tail else lines)


def _counted(number: int, what: str) -> str:
    return f"no {what}" if number == 0 else f"{number} {what}{'' if number == 1 else 's'}"


def _session(session: SessionReference) -> str:
    return f"Session {session.session_id}{_title(session)}"


def _title(session: SessionReference) -> str:
    line = short_title(session.title)
    return f" ({line})" if line else ""


def _lineage(session: LineageSession) -> str:
    return (
        f"{session.session_id}{_title(session)} | {moment(session.created_at)} | "
        f"{_availability(session.availability)}"
    )


def _availability(availability: Sequence[str]) -> str:
    return ", ".join(availability)


def _event(match: EventMatch) -> str:
    return f"seq {match.seq} | {match.type} | {match.surface} | {moment(match.time)}"


def _tree(nodes: Sequence[Descendant], depth: int) -> list[str]:
    lines: list[str] = []
    for node in nodes:
        lines.append(f"{'  ' * depth}- {_lineage(node)}")
        lines += _tree(node.descendants, depth + 1)
    return lines


def _seqs(seqs: Sequence[int]) -> str:
    return ", ".join(map(str, seqs)) or "none"


def _neighbour(neighbour: Neighbour) -> str:
    text = neighbour.text or "(no text)"
    more = " […]" if neighbour.text_truncated else ""
    return f"[{neighbour.seq}] {neighbour.type} {moment(neighbour.time)}\n{text}{more}"

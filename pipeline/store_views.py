"""The store as people look at it: sessions, events, surface and lineage, as data and as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dsh_memory.pipeline.shared.errors import RequestError, clipped
from dsh_memory.pipeline.shared.readable_text import read_text
from dsh_memory.pipeline.shared.timestamps import moment
from dsh_memory.sessionquery.model.wire import to_wire

if TYPE_CHECKING:
    from dsh_memory.sessionquery.engine import SessionQueryEngine
    from dsh_memory.sessionquery.model.reads import (
        EventRecord,
        EventTrace,
        LineageNode,
        SessionTrace,
        SurfaceView,
    )
    from dsh_memory.sessionquery.model.sessions import SessionRecord
    from dsh_memory.sessionquery.reads.summaries import SessionSummary

_TITLE_WIDTH = 60
_LINE_WIDTH = 100


def session_filters(
    *, cwd: str | None, since: str | None, parent: str | None
) -> list[dict[str, Any]]:
    """Return the engine's filters for the options of ``dsh-memory sessions``.

    Args:
        cwd: The exact recorded directory.
        since: ``2026-09-01`` or ``2026-09-01T12:30:00`` (UTC unless an offset is given).
        parent: The id of the parent session.

    Raises:
        RequestError: `since` is no date.
    """
    filters: list[dict[str, Any]] = []
    if cwd is not None:
        filters.append({"kind": "cwd", "values": [cwd]})
    if parent is not None:
        filters.append({"kind": "parent", "values": [parent]})
    if since is not None:
        filters.append({"kind": "created-at", "from": _milliseconds(since)})
    return filters


async def session_overview(
    engine: SessionQueryEngine, filters: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return ``{sessions, not_listed}``: one entry a listed session, and the logs that are none."""
    summaries = await engine.summarize_sessions(filters)
    known = {summary.record.header.id for summary in summaries if summary.error is not None}
    unreadable = [] if filters else await engine.list_unreadable()
    return {
        "sessions": [_summary_json(summary) for summary in summaries],
        "not_listed": [to_wire(item) for item in unreadable if item.session_id not in known],
    }


def render_overview(overview: dict[str, Any]) -> str:
    """Return the overview as text, newest session first."""
    lines = [f"{len(overview['sessions'])} session(s)"]
    for item in overview["sessions"]:
        marks = [name for name in ("live", "persisted") if item[name]]
        if item["origin"] == "subagent":
            marks.append("subagent")
        if item.get("format_status", "current") != "current":
            marks.append("older format")
        counted = "unreadable" if "error" in item else f"{item['events']} events"
        lines.append("")
        lines.append(f"{item['session_id']}  {_date(item['created_at'])}  {counted}")
        lines.append(f"  {_one_line(item['title'] or '(untitled)', _TITLE_WIDTH)}")
        lines.append(f"  {item['cwd'] or '(no directory)'}  [{', '.join(marks)}]")
        if "error" in item:
            lines.append(f"  ! {item['error']['code']}: {item['error']['message']}")
    if overview["not_listed"]:
        lines += ["", "Logs that are no session here:"]
        for problem in overview["not_listed"]:
            lines.append(f"  ! {problem['path']}: {problem['reason']}")
    return "\n".join(lines)


def render_events(records: Iterable[EventRecord]) -> str:
    """Return one line an event: number, time, surface, type."""
    lines = [
        f"{record.seq:6}  {moment(record.time)}  {record.surface:9}  {record.type}"
        for record in records
    ]
    return "\n".join(lines) if lines else "(no events)"


def render_surface(view: SurfaceView) -> str:
    """Return the current surface in the model's order, each event with the start of its text."""
    lines = [
        f"Session {view.session.id}: {len(view.events)} events on the surface, "
        f"captured through {view.captured_through_seq}"
    ]
    for event in view.events:
        text = _one_line(read_text(event), _LINE_WIDTH) or "(no recalled text)"
        lines += ["", f"[{event['seq']}] {event['type']}  {moment(event['time'])}", f"  {text}"]
    return "\n".join(lines)


def render_lineage(trace: SessionTrace) -> str:
    """Draw the tree from the root to every descendant, the target marked."""
    lines: list[str] = []
    if not trace.complete:
        lines.append(f"(parent {trace.unresolved_parent_id} is not in this store)")
    chain = [*reversed(trace.ancestors), trace.target]
    for depth, record in enumerate(chain):
        arm = "   " * (depth - 1) + "└─ " if depth else ""
        lines.append(arm + _branch(record))
    lines[-1] += "   <- this session"
    prefix = "   " * (len(chain) - 1)
    stack = [(node, prefix, last) for node, last in _marked(trace.descendants)][::-1]
    while stack:
        node, prefix, last = stack.pop()
        lines.append(f"{prefix}{'└─ ' if last else '├─ '}{_branch(node.session)}")
        below = prefix + ("   " if last else "│  ")
        stack += [(child, below, final) for child, final in _marked(node.descendants)][::-1]
    return "\n".join(lines)


def render_event_trace(trace: EventTrace) -> str:
    """Return what an event replaced and cites, and what replaced and cites it."""
    target = trace.target
    lines = [f"[{target.seq}] {target.type}  {moment(target.time)}  {target.surface}"]
    chain = " -> ".join(map(str, trace.replacement_chain))
    lines.append(f"  replaced by: {chain or 'nothing'}")
    for label, seqs in (
        ("replaces", trace.replaced_event_seqs),
        ("cites", trace.source_event_seqs),
        ("cited by", trace.derived_event_seqs),
    ):
        lines.append(f"  {label}: {', '.join(map(str, seqs)) or 'nothing'}")
    return "\n".join(lines)


def _marked(nodes: Sequence[LineageNode]) -> list[tuple[LineageNode, bool]]:
    return [(node, number == len(nodes) - 1) for number, node in enumerate(nodes)]


def _branch(record: SessionRecord) -> str:
    header = record.header
    kind = "subagent" if header.origin == "subagent" else "fork" if header.is_seeded else "main"
    return f"{header.id}  {_date(header.created_at)}  ({kind})"


def _summary_json(summary: SessionSummary) -> dict[str, Any]:
    header = summary.record.header
    item: dict[str, Any] = {
        "session_id": header.id,
        "title": summary.title,
        "created_at": header.created_at,
        "cwd": header.cwd,
        "parent": header.parent_session,
        "origin": header.origin,
        "events": summary.event_count,
        "live": summary.record.live,
        "persisted": summary.record.persisted,
        "format_status": summary.record.format_status,
    }
    if summary.error is not None:
        item["error"] = summary.error.to_json()
    return item


def _milliseconds(since: str) -> int:
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        raise RequestError(
            f"--since must be a date, not {clipped(since)!r}.",
            hint="For instance 2026-09-01 or 2026-09-01T12:30:00.",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _date(milliseconds: int) -> str:
    return moment(milliseconds)[:16].replace("T", " ")


def _one_line(text: str, width: int) -> str:
    line = re.sub(r"\s+", " ", text[: 4 * width]).strip()
    return line if len(line) <= width else line[: width - 1] + "…"

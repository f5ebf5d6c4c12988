"""Records as JSON, in the original engine's terms (camelCase, absent optionals left out)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from dsh_memory.sessionquery.model.reads import (
    EventDocument,
    EventRecord,
    EventTrace,
    EventWindow,
    LineageNode,
    Observation,
    SessionLog,
    SessionTitle,
    SessionTrace,
    SurfaceView,
    TitleResult,
    TitleSnapshot,
)
from dsh_memory.sessionquery.model.search import (
    EventHit,
    EventPage,
    SessionHit,
    SessionPage,
    UnreadableSession,
)
from dsh_memory.sessionquery.model.sessions import SessionHeader, SessionRecord

_EXPONENT_FROM: Final = 1e21
"""JavaScript writes numbers from here on with an exponent."""


def to_wire(value: Any) -> Any:
    """Return the JSON form of a record, of a sequence of records, or of None.

    Raises:
        TypeError: The value is no record of `sessionquery.model.sessions`.
    """
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        return [to_wire(entry) for entry in value]
    converter = _CONVERTERS.get(type(value))
    if converter is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return converter(value)


def payload(value: Any) -> Any:
    """Return JSON as the original shows it.

    ``4.0`` is written as 4 and an infinite number as null, as JavaScript does; a key named
    ``__proto__`` is never shown.
    """
    kind = value.__class__
    if kind is dict:
        return {key: payload(entry) for key, entry in value.items() if key != "__proto__"}
    if kind is list:
        return [payload(entry) for entry in value]
    if kind is float:
        if not math.isfinite(value):
            return None
        if value.is_integer() and abs(value) < _EXPONENT_FROM:
            return int(value)
    return value


def _optional(target: dict[str, Any], **values: Any) -> dict[str, Any]:
    target.update((key, value) for key, value in values.items() if value is not None)
    return target


def _header(header: SessionHeader) -> dict[str, Any]:
    out: dict[str, Any] = {
        "version": header.version,
        "id": header.id,
        "createdAt": header.created_at,
    }
    _optional(out, cwd=header.cwd, parentSession=header.parent_session)
    out["isSeeded"] = header.is_seeded
    return _optional(
        out,
        origin=header.origin,
        delegationDepth=header.delegation_depth,
        agentPreset=header.agent_preset,
    )


def _record(record: SessionRecord) -> dict[str, Any]:
    return {
        "header": _header(record.header),
        "live": record.live,
        "persisted": record.persisted,
        "formatStatus": record.format_status,
    }


def _event_record(record: EventRecord | EventDocument | EventHit) -> dict[str, Any]:
    return {
        "sessionId": record.session_id,
        "seq": record.seq,
        "type": record.type,
        "time": record.time,
        "surface": record.surface,
    }


def _event_document(document: EventDocument) -> dict[str, Any]:
    return {**_event_record(document), "text": document.text}


def _event_hit(hit: EventHit) -> dict[str, Any]:
    return {**_event_record(hit), "snippet": hit.snippet}


def _session_hit(hit: SessionHit) -> dict[str, Any]:
    return {
        "header": _header(hit.header),
        "live": hit.live,
        "persisted": hit.persisted,
        "bestMatch": _event_hit(hit.best_match),
    }


def _unreadable(session: UnreadableSession) -> dict[str, Any]:
    out = {"path": session.path, "code": session.code, "reason": session.reason}
    return _optional(out, sessionId=session.session_id)


def _page_rest(
    out: dict[str, Any],
    next_cursor: str | None,
    unreadable: Sequence[UnreadableSession],
    diagnostics: Sequence[str],
) -> dict[str, Any]:
    return _optional(
        out,
        nextCursor=next_cursor,
        unreadableSessions=[_unreadable(entry) for entry in unreadable] or None,
        diagnostics=list(diagnostics) or None,
    )


def _session_page(page: SessionPage) -> dict[str, Any]:
    out = {"items": [_session_hit(hit) for hit in page.items]}
    return _page_rest(out, page.next_cursor, page.unreadable_sessions, page.diagnostics)


def _event_page(page: EventPage) -> dict[str, Any]:
    out = {"session": _header(page.session), "items": [_event_hit(hit) for hit in page.items]}
    return _page_rest(out, page.next_cursor, page.unreadable_sessions, page.diagnostics)


def _events(events: Iterable[Any]) -> list[Any]:
    return [payload(event) for event in events]


def _window(window: EventWindow) -> dict[str, Any]:
    return {
        "session": _header(window.session),
        "inheritedEventCount": window.inherited_event_count,
        "target": payload(window.target),
        "events": _events(window.events),
        "startSeq": window.start_seq,
        "endSeq": window.end_seq,
    }


def _log(log: SessionLog) -> dict[str, Any]:
    return {
        "session": _header(log.session),
        "inheritedEventCount": log.inherited_event_count,
        "events": _events(log.events),
    }


def _surface(view: SurfaceView) -> dict[str, Any]:
    return {
        "session": _header(view.session),
        "inheritedEventCount": view.inherited_event_count,
        "capturedThroughSeq": None if view.captured_through_seq < 0 else view.captured_through_seq,
        "events": _events(view.events),
    }


def _observation(observation: Observation) -> dict[str, Any]:
    return {
        "source": observation.source,
        "header": _header(observation.header),
        "inheritedEventCount": observation.inherited_event_count,
        "events": _events(observation.events),
        "cursor": observation.cursor,
    }


def _title(title: SessionTitle) -> dict[str, Any]:
    rest = {
        "messageSeqs": list(title.message_seqs),
        "source": payload(title.source),
        "eventSeq": title.event_seq,
        "updatedAt": title.updated_at,
    }
    return rest if title.title is None else {"title": title.title, **rest}


def _title_snapshot(snapshot: TitleSnapshot) -> dict[str, Any]:
    return _optional({"session": _header(snapshot.session)}, title=to_wire(snapshot.title))


def _title_result(result: TitleResult) -> dict[str, Any]:
    if result.error is None:
        return {
            "sessionId": payload(result.session_id),
            "status": "fulfilled",
            "value": to_wire(result.value),
        }
    reason = {
        "name": "SessionQueryError",
        "code": result.error.code,
        "message": result.error.message,
    }
    return {"sessionId": payload(result.session_id), "status": "rejected", "reason": reason}


def _session_trace(trace: SessionTrace) -> dict[str, Any]:
    out = {
        "target": _record(trace.target),
        "ancestors": [_record(record) for record in trace.ancestors],
        "descendants": _nodes(trace.descendants),
        "complete": trace.complete,
    }
    return _optional(
        out,
        root=_record(trace.root) if trace.root is not None else None,
        unresolvedParentId=trace.unresolved_parent_id,
    )


def _nodes(nodes: Sequence[LineageNode]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    waiting = [(node, out) for node in reversed(nodes)]
    while waiting:
        node, target = waiting.pop()
        below: list[dict[str, Any]] = []
        target.append({"session": _record(node.session), "descendants": below})
        waiting.extend((child, below) for child in reversed(node.descendants))
    return out


def _event_trace(trace: EventTrace) -> dict[str, Any]:
    out: dict[str, Any] = {
        "session": _header(trace.session),
        "target": _event_record(trace.target),
    }
    _optional(out, replacedBy=trace.replaced_by)
    out["replacementChain"] = list(trace.replacement_chain)
    out["replacedEventSeqs"] = list(trace.replaced_event_seqs)
    out["sourceEventSeqs"] = list(trace.source_event_seqs)
    out["derivedEventSeqs"] = list(trace.derived_event_seqs)
    return out


_CONVERTERS: Final[dict[type, Callable[[Any], Any]]] = {
    SessionHeader: _header,
    SessionRecord: _record,
    EventRecord: _event_record,
    EventDocument: _event_document,
    EventHit: _event_hit,
    SessionHit: _session_hit,
    UnreadableSession: _unreadable,
    SessionPage: _session_page,
    EventPage: _event_page,
    EventWindow: _window,
    SessionLog: _log,
    SurfaceView: _surface,
    Observation: _observation,
    SessionTitle: _title,
    TitleSnapshot: _title_snapshot,
    TitleResult: _title_result,
    SessionTrace: _session_trace,
    EventTrace: _event_trace,
}

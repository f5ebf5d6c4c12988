"""Document 002's five tools over one engine, for one caller.

Every tool authorizes the session by its authoritative header before it looks inside: another
session than the caller's own must have been recorded in exactly the caller's directory. Subagent
sessions are sessions like others here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import anyio
from dsh_memory.pipeline.session_tools.requests import (
    EventSearchRequest,
    SessionSearchRequest,
    parse_event_read,
    parse_event_search,
    parse_event_trace,
    parse_session_search,
    parse_session_trace,
    range_filter,
)
from dsh_memory.pipeline.session_tools.results import (
    EventReadAnswer,
    EventSearchAnswer,
    EventTraceAnswer,
    SessionSearchAnswer,
    SessionTraceAnswer,
)
from dsh_memory.pipeline.shared.closed_models import Closed
from dsh_memory.pipeline.shared.engine_port import HistoryEngine
from dsh_memory.pipeline.shared.errors import TIMEOUT, RequestError
from dsh_memory.pipeline.shared.model_boundary import model_boundary, sanitized, side_notes
from dsh_memory.pipeline.shared.text_budget import clip
from dsh_memory.pipeline.shared.titles import TITLE_SECONDS, read_titles
from dsh_memory.pipeline.shared.workspace_access import Caller
from dsh_memory.sessionquery.errors import SessionQueryError
from dsh_memory.sessionquery.log.searchable_text import PayloadError, event_text
from dsh_memory.sessionquery.model.reads import LineageNode
from dsh_memory.sessionquery.model.search import EventHit, SessionHit
from dsh_memory.sessionquery.model.sessions import Event, SessionRecord

MAX_RESULTS: Final = 100
SEARCH_SECONDS: Final = 30.0
NEIGHBOUR_UNITS: Final = 500

C = TypeVar("C", bound=Closed)


class SessionTools:
    """The five tools.

    Args:
        engine: Answers searches, reads and traces.
        caller: Whose sessions may be seen.
        home: The store's path, kept out of messages.
        page_size: Hits that one page of the engine may have.
        max_results: Most authorized hits that a search collects over the engine's pages.
        seconds: How long a search may take.
    """

    def __init__(
        self,
        engine: HistoryEngine,
        caller: Caller,
        *,
        home: str,
        page_size: int = MAX_RESULTS,
        max_results: int = MAX_RESULTS,
        seconds: float = SEARCH_SECONDS,
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._home = home
        self._page_size = min(page_size, max_results)
        self._max_results = max_results
        self._seconds = seconds

    async def session_search(self, value: object) -> SessionSearchAnswer:
        """The strongest event of each session of the caller's directory, never of its own."""
        request = parse_session_search(value)
        self._caller.require()
        async with self._searching():
            hits, truncated, notes = await self._session_hits(request)
        titles = await self._titles([hit.header.id for hit in hits])
        return _clean(
            SessionSearchAnswer,
            source="dsh",
            query=request.query,
            results=[_session_match(hit, titles) for hit in hits],
            truncated=truncated,
            **notes,
        )

    async def session_event_search(self, value: object) -> EventSearchAnswer:
        """Matching events of one session; of the caller's own without the step that is running."""
        request = parse_event_search(value)
        session_id = await self._target(request.session_id)
        async with self._searching():
            items, truncated, notes = await self._event_hits(request, session_id)
        titles = await self._titles([session_id])
        return _clean(
            EventSearchAnswer,
            source="dsh",
            query=request.query,
            session=_reference(session_id, titles),
            results=[_event_match(item) for item in items],
            truncated=truncated,
            **notes,
        )

    async def session_trace(self, value: object) -> SessionTraceAnswer:
        """Ancestors and descendants of a session, as far as the caller may see them."""
        session_id = await self._target(parse_session_trace(value).session_id)
        async with model_boundary(self._home):
            trace = await self._engine.trace_session(session_id)
        ancestors: list[SessionRecord] = []
        for record in trace.ancestors:
            if not self._caller.may_see(record.header):
                break
            ancestors.append(record)
        descendants = self._visible(trace.descendants)
        records = [trace.target, *ancestors, *_flattened(descendants)]
        titles = await self._titles([record.header.id for record in records])
        return _clean(
            SessionTraceAnswer,
            source="dsh",
            session=_lineage_fields(trace.target, titles),
            ancestors=[_lineage_fields(record, titles) for record in ancestors],
            descendants=[_descendant_fields(node, titles) for node in descendants],
            complete=trace.complete and len(ancestors) == len(trace.ancestors),
        )

    async def session_event_trace(self, value: object) -> EventTraceAnswer:
        """What an event replaced, cites, and was replaced and cited by."""
        request = parse_event_trace(value)
        session_id = await self._target(request.session_id)
        async with model_boundary(self._home):
            trace = await self._engine.trace_event(session_id, request.seq)
        titles = await self._titles([session_id])
        target = trace.target
        return _clean(
            EventTraceAnswer,
            source="dsh",
            session=_reference(session_id, titles),
            target={
                "seq": target.seq,
                "type": target.type,
                "time": target.time,
                "surface": target.surface,
            },
            replaced_by=trace.replaced_by,
            replacement_chain=trace.replacement_chain,
            replaced_event_seqs=trace.replaced_event_seqs,
            source_event_seqs=trace.source_event_seqs,
            derived_event_seqs=trace.derived_event_seqs,
        )

    async def session_event_read(self, value: object) -> EventReadAnswer:
        """One event as it was recorded, with its neighbours in short."""
        request = parse_event_read(value)
        session_id = await self._target(request.session_id)
        async with model_boundary(self._home):
            window = await self._engine.read_event(
                session_id, request.seq, before=request.before, after=request.after
            )
        titles = await self._titles([session_id])
        neighbours = [event for event in window.events if event["seq"] != window.target["seq"]]
        return _clean(
            EventReadAnswer,
            source="dsh",
            session=_reference(session_id, titles),
            inherited_event_count=window.inherited_event_count,
            target=window.target,
            before=[_neighbour(event) for event in neighbours if event["seq"] < request.seq],
            after=[_neighbour(event) for event in neighbours if event["seq"] > request.seq],
        )

    async def _target(self, session_id: str | None) -> str:
        self._caller.require()
        if session_id is None:
            if self._caller.session_id is None:
                raise RequestError(
                    "session_id is required: the server does not know the caller's own session.",
                    hint="Give a session_id, or start the server with --caller-session ID.",
                )
            return self._caller.session_id
        async with model_boundary(self._home):
            await self._caller.authorize(self._engine, session_id)
        return session_id

    async def _session_hits(
        self, request: SessionSearchRequest
    ) -> tuple[list[SessionHit], bool, dict[str, Any]]:
        filters = await self._session_filters(request)
        if filters is None:
            return [], False, {}
        own = self._caller.session_id
        hits: list[SessionHit] = []
        cursor: str | None = None
        while True:
            page = await self._engine.search_sessions(
                request.query,
                session_filters=filters,
                event_filters=request.event_filters(),
                limit=self._page_size,
                cursor=cursor,
            )
            hits += [
                hit
                for hit in page.items
                if hit.header.id != own and hit.header.cwd == self._caller.cwd
            ]
            cursor = page.next_cursor
            if cursor is None or len(hits) > self._max_results:
                truncated = cursor is not None or len(hits) > self._max_results
                return hits[: self._max_results], truncated, side_notes(page)

    async def _session_filters(self, request: SessionSearchRequest) -> list[dict[str, Any]] | None:
        """The engine's session filters; None when nothing visible can match."""
        if self._caller.cwd is None:
            return None
        filters: list[dict[str, Any]] = [{"kind": "cwd", "values": [self._caller.cwd]}]
        if request.session_ids is not None:
            filters.append({"kind": "id", "values": list(request.session_ids)})
        if request.parent_session_ids is not None or request.include_root_sessions:
            parents: list[str | None] = []
            for parent in request.parent_session_ids or ():
                if await self._may_see(parent):
                    parents.append(parent)
            if request.include_root_sessions:
                parents.append(None)
            if not parents:
                return None
            filters.append({"kind": "parent", "values": parents})
        if request.availability is not None:
            filters.append({"kind": "availability", "values": list(request.availability)})
        return filters + range_filter("created-at", request.created_at_from, request.created_at_to)

    async def _may_see(self, session_id: str) -> bool:
        try:
            await self._caller.authorize(self._engine, session_id)
        except RequestError:
            return False
        return True

    async def _event_hits(
        self, request: EventSearchRequest, session_id: str
    ) -> tuple[list[EventHit], bool, dict[str, Any]]:
        filters = request.event_filters()
        if session_id == self._caller.session_id:
            filters += await self._before_this_step(session_id)
        items: list[EventHit] = []
        cursor: str | None = None
        while True:
            page = await self._engine.search_events(
                session_id,
                request.query,
                filters=filters,
                limit=self._page_size,
                cursor=cursor,
            )
            items += page.items
            cursor = page.next_cursor
            if cursor is None or len(items) >= self._max_results:
                truncated = cursor is not None or len(items) > self._max_results
                return items[: self._max_results], truncated, side_notes(page)

    async def _before_this_step(self, session_id: str) -> list[dict[str, Any]]:
        """A clause that leaves out the last step: it is the one that makes this call."""
        events = await self._engine.list_events(session_id)
        start = next((e.seq for e in reversed(events) if e.type == "step/start"), None)
        return [] if start is None else [{"kind": "seq", "to": start - 1}]

    @asynccontextmanager
    async def _searching(self) -> AsyncIterator[None]:
        async with model_boundary(self._home):
            with anyio.move_on_after(self._seconds) as scope:
                yield
            if scope.cancelled_caught:
                raise SessionQueryError(
                    f"The search took longer than {self._seconds:g} seconds.",
                    code=TIMEOUT,
                    hint="Search again: what was indexed so far is kept. Narrower filters help.",
                    retryable=True,
                )

    async def _titles(self, session_ids: Sequence[str]) -> dict[str, str]:
        return await read_titles(self._engine, session_ids, seconds=TITLE_SECONDS)

    def _visible(self, nodes: Sequence[LineageNode]) -> list[LineageNode]:
        return [
            LineageNode(node.session, tuple(self._visible(node.descendants)))
            for node in nodes
            if self._caller.may_see(node.session.header)
        ]


def _clean(model: type[C], **fields: Any) -> C:
    return model.model_validate(sanitized(fields))


def _reference(session_id: str, titles: dict[str, str]) -> dict[str, Any]:
    title = titles.get(session_id)
    return {"session_id": session_id, **({} if title is None else {"title": title})}


def _availability(*, live: bool, persisted: bool) -> list[str]:
    return [name for name, there in (("live", live), ("persisted", persisted)) if there]


def _event_match(hit: EventHit) -> dict[str, Any]:
    return {
        "seq": hit.seq,
        "type": hit.type,
        "time": hit.time,
        "surface": hit.surface,
        "snippet": hit.snippet,
    }


def _session_match(hit: SessionHit, titles: dict[str, str]) -> dict[str, Any]:
    return {
        **_reference(hit.header.id, titles),
        "created_at": hit.header.created_at,
        "parent_session_id": hit.header.parent_session,
        "availability": _availability(live=hit.live, persisted=hit.persisted),
        "best_match": _event_match(hit.best_match),
    }


def _lineage_fields(record: SessionRecord, titles: dict[str, str]) -> dict[str, Any]:
    return {
        **_reference(record.header.id, titles),
        "created_at": record.header.created_at,
        "availability": _availability(live=record.live, persisted=record.persisted),
    }


def _descendant_fields(node: LineageNode, titles: dict[str, str]) -> dict[str, Any]:
    return {
        **_lineage_fields(node.session, titles),
        "descendants": [_descendant_fields(child, titles) for child in node.descendants],
    }


def _flattened(nodes: Sequence[LineageNode]) -> list[SessionRecord]:
    return [record for node in nodes for record in (node.session, *_flattened(node.descendants))]


def _neighbour(event: Event) -> dict[str, Any]:
    try:
        text = clip(event_text(event), NEIGHBOUR_UNITS)
    except PayloadError:
        text = clip("", NEIGHBOUR_UNITS)
    return {
        "seq": event["seq"],
        "type": event["type"],
        "time": event["time"],
        "text": text.text,
        "text_truncated": text.truncated,
    }

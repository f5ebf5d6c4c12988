"""The native page and what may be shown of it: header checks, echoes, bounded snippets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dsh_memory.pipeline.memory.requests import SearchRequest
from dsh_memory.pipeline.memory.results import SearchHit
from dsh_memory.pipeline.shared.cancellation import stop_if_cancelled
from dsh_memory.pipeline.shared.echoes import is_echo
from dsh_memory.pipeline.shared.errors import SUBAGENT_SESSION, RequestError, clipped
from dsh_memory.pipeline.shared.text_budget import clip
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.js.text import replace_surrogates
from dsh_memory.sessionquery.model.search import EventHit, UnreadableSession
from dsh_memory.sessionquery.model.sessions import SessionHeader

if TYPE_CHECKING:
    from dsh_memory.pipeline.shared.engine_port import MemoryEngine

SNIPPET_UNITS: Final = 500
"""Longest snippet of a result, in UTF-16 units (document 000)."""


@dataclass(slots=True)
class EligiblePage:
    """The hits of one native page that may be shown, in native order, and what was left out."""

    hits: list[SearchHit] = field(default_factory=list)
    excluded_subagents: int = 0
    excluded_echoes: int = 0
    next_cursor: str | None = None
    unreadable: tuple[UnreadableSession, ...] = ()
    diagnostics: tuple[str, ...] = ()


async def eligible_page(
    engine: MemoryEngine,
    request: SearchRequest,
    *,
    exclude_echoes: bool,
    signal: AbortSignal | None,
) -> EligiblePage:
    """Fetch one native page and check every hit against its session's authoritative header.

    Subagent sessions are left out and counted; the indexed header is never trusted with that.

    Raises:
        RequestError: ``REQUEST_SUBAGENT_SESSION`` for an exact subagent session, also without hits.
        SessionQueryError: The search or a header failed.
        CancelledRunError: `signal` was set; no further header is read then.
    """
    if request.session_id is not None:
        return await _session_page(
            engine, request, request.session_id, exclude_echoes=exclude_echoes, signal=signal
        )
    filters = [] if request.cwd is None else [{"kind": "cwd", "values": [request.cwd]}]
    native = await engine.search_sessions(
        request.query,
        session_filters=filters,
        limit=request.limit,
        cursor=request.cursor,
        signal=signal,
    )
    page = EligiblePage(
        next_cursor=native.next_cursor,
        unreadable=native.unreadable_sessions,
        diagnostics=native.diagnostics,
    )
    for hit in native.items:
        await stop_if_cancelled(signal)
        header = await engine.read_header(hit.header.id, signal=signal)
        if not header.is_main:
            page.excluded_subagents += 1
            continue
        _add(
            page,
            header,
            hit.best_match,
            exclude_echoes=exclude_echoes,
            availability={"live": hit.live, "persisted": hit.persisted},
        )
    await stop_if_cancelled(signal)
    return page


async def _session_page(
    engine: MemoryEngine,
    request: SearchRequest,
    session_id: str,
    *,
    exclude_echoes: bool,
    signal: AbortSignal | None,
) -> EligiblePage:
    native = await engine.search_events(
        session_id, request.query, limit=request.limit, cursor=request.cursor, signal=signal
    )
    await stop_if_cancelled(signal)
    header = await engine.read_header(session_id, signal=signal)
    require_main(header)
    page = EligiblePage(
        next_cursor=native.next_cursor,
        unreadable=native.unreadable_sessions,
        diagnostics=native.diagnostics,
    )
    for match in native.items:
        _add(page, header, match, exclude_echoes=exclude_echoes, availability={})
    await stop_if_cancelled(signal)
    return page


def require_main(header: SessionHeader) -> None:
    """Refuse the session of a subagent.

    Raises:
        RequestError: ``REQUEST_SUBAGENT_SESSION``.
    """
    if not header.is_main:
        raise RequestError(
            f"Session {clipped(header.id, 100)!r} belongs to a subagent; "
            "only main sessions can be recalled.",
            code=SUBAGENT_SESSION,
            hint="Search without session_id, or use the session that started the subagent.",
        )


def _add(
    page: EligiblePage,
    header: SessionHeader,
    match: EventHit,
    *,
    exclude_echoes: bool,
    availability: dict[str, bool],
) -> None:
    echo = is_echo(match)
    if echo and exclude_echoes:
        page.excluded_echoes += 1
        return
    snippet = clip(replace_surrogates(match.snippet), SNIPPET_UNITS)
    marks: dict[str, Any] = {"echo": True} if echo else {}
    page.hits.append(
        SearchHit(
            session_id=replace_surrogates(header.id),
            cwd=None if header.cwd is None else replace_surrogates(header.cwd),
            created_at=header.created_at,
            **availability,
            seq=match.seq,
            type=replace_surrogates(match.type),
            time=match.time,
            surface=match.surface,
            snippet=snippet.text,
            snippet_truncated=snippet.truncated,
            **marks,
        )
    )

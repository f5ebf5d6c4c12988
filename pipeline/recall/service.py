"""``recall`` (document 004): one page of history within the caller's project, with hints.

A project is a recorded directory, compared exactly. Whatever fails, fails with a hint. When a query
in a script without word boundaries finds nothing, a literal scan of the texts helps out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import anyio
from dsh_memory.pipeline.recall.requests import RecallRequest, RecallResult, parse_recall
from dsh_memory.pipeline.recall.substring_scan import CJK, ScanHit, ScanOutcome, scan
from dsh_memory.pipeline.shared.echoes import is_echo
from dsh_memory.pipeline.shared.engine_port import HistoryEngine
from dsh_memory.pipeline.shared.errors import TIMEOUT, RequestError
from dsh_memory.pipeline.shared.model_boundary import model_boundary, sanitized, side_notes
from dsh_memory.pipeline.shared.titles import read_titles
from dsh_memory.pipeline.shared.workspace_access import Caller
from dsh_memory.runtime.config.settings import Settings
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.sessionquery.errors import (
    INVALID_CURSOR,
    SEARCH_DISABLED,
    SESSION_NOT_FOUND,
    STALE_CURSOR,
    SessionQueryError,
)
from dsh_memory.sessionquery.model.search import EventHit
from dsh_memory.sessionquery.model.sessions import SessionHeader

SECONDS: Final = 10.0
TITLE_SECONDS: Final = 2.0
_DAY_MS: Final = 86_400_000
_BOUND = re.compile(r"(\d{1,16})\.(.+)", re.DOTALL)

_HINTS: Final = {
    SEARCH_DISABLED: "Full-text search is off. Turn it on: dsh-memory config set index.open_at "
    "first-search (and index.path, unless the default place is fine).",
    STALE_CURSOR: "The history changed since that page. Call recall again without cursor.",
    INVALID_CURSOR: "Repeat exactly the arguments of the page before, or call without cursor.",
    SESSION_NOT_FOUND: "Call recall without session_id first to find sessions.",
}
_ANY_HINT: Final = (
    "Try again; if it persists, `dsh-memory status` shows the state of store and index."
)


@dataclass(frozen=True, slots=True)
class _Page:
    """Hits that may be shown, from the index or from the scan."""

    hits: Sequence[tuple[SessionHeader, EventHit | ScanHit]]
    excluded_echoes: int
    next_cursor: str | None
    notes: dict[str, Any]


class Recall:
    """Answers recall requests for one caller.

    Args:
        engine: Answers searches, filters and reads.
        settings: `recall` and the snippet length are used.
        caller: Whose project is the default scope.
        home: The store's path, kept out of messages.
        now: Milliseconds since the epoch, for ``since_days``.
        seconds: How long one call may take.
    """

    def __init__(
        self,
        engine: HistoryEngine,
        settings: Settings,
        caller: Caller,
        *,
        home: str,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        seconds: float = SECONDS,
    ) -> None:
        self._engine = engine
        self._recall = settings.recall
        self._snippet_chars = settings.index.snippet_chars
        self._caller = caller
        self._home = home
        self._now = now
        self._seconds = seconds

    async def recall(self, value: object) -> RecallResult:
        """Run one request of any JSON type.

        Raises:
            RequestError: The request, its scope or the caller is refused.
            SessionQueryError: The search failed, or took longer than it may
                (``SESSION_QUERY_TIMEOUT``). Every error has a hint.
        """
        try:
            async with model_boundary(self._home):
                with anyio.move_on_after(self._seconds) as scope:
                    return await self._run(parse_recall(value, self._recall))
            assert scope.cancelled_caught
        except DshMemoryError as error:
            error.hint = _HINTS.get(error.code, error.hint or _ANY_HINT)
            raise
        raise SessionQueryError(
            f"recall took longer than {self._seconds:g} seconds.",
            code=TIMEOUT,
            hint="The first search builds the index and can be slow: call again, what was indexed "
            "so far is kept. since_days or session_id make later calls cheaper.",
            retryable=True,
        )

    async def _run(self, request: RecallRequest) -> RecallResult:
        scope = await self._scope(request)
        since, cursor = self._since(request)
        event_filters = [] if since is None else [{"kind": "time", "from": since}]
        limit = request.limit or self._recall.default_limit
        page = await self._native(request, scope, event_filters, limit, cursor)
        hint: str | None = None
        if not page.hits and page.next_cursor is None and request.cursor is None:
            outcome = await self._help_out(request, scope, event_filters, limit)
            if outcome is not None and outcome.hits:
                page = _Page(
                    [(hit.header, hit) for hit in outcome.hits],
                    outcome.excluded_echoes,
                    None,
                    page.notes,
                )
            hint = self._hint(request, scope, outcome)
        return await self._result(request, scope, page, since, hint)

    async def _scope(self, request: RecallRequest) -> Literal["project", "all", "session"]:
        self._caller.require()
        everything = request.all_projects
        if everything and not self._recall.allow_all_projects:
            raise RequestError(
                "all_projects is not allowed here.",
                hint="Leave it out to search the caller's project; the user can allow it with "
                "recall.allow_all_projects.",
            )
        if request.session_id is not None:
            if not everything:
                await self._caller.authorize(self._engine, request.session_id)
            return "session"
        if everything:
            return "all"
        return "project"

    def _since(self, request: RecallRequest) -> tuple[int | None, str | None]:
        """The earliest event time, and the engine's cursor.

        A page's successor must ask for the same time, so that the cursor carries it.
        """
        if request.since_days is None:
            return None, request.cursor
        if request.cursor is None:
            return self._now() - request.since_days * _DAY_MS, None
        bound = _BOUND.fullmatch(request.cursor)
        if bound is None:
            raise SessionQueryError(
                "The cursor does not belong to a page with since_days.", code=INVALID_CURSOR
            )
        return int(bound[1]), bound[2]

    async def _native(
        self,
        request: RecallRequest,
        scope: str,
        event_filters: list[dict[str, Any]],
        limit: int,
        cursor: str | None,
    ) -> _Page:
        if scope == "session":
            events = await self._engine.search_events(
                request.session_id,
                request.query,
                filters=event_filters,
                limit=limit,
                cursor=cursor,
            )
            matches = [(events.session, match) for match in events.items]
            return self._eligible(matches, events.next_cursor, side_notes(events))
        sessions = await self._engine.search_sessions(
            request.query,
            session_filters=self._session_filters(scope),
            event_filters=event_filters,
            limit=limit,
            cursor=cursor,
        )
        matches = [(hit.header, hit.best_match) for hit in sessions.items]
        return self._eligible(matches, sessions.next_cursor, side_notes(sessions))

    def _session_filters(self, scope: str) -> list[dict[str, Any]]:
        if scope == "all":
            return []
        if self._caller.cwd is not None:
            return [{"kind": "cwd", "values": [self._caller.cwd]}]
        return [{"kind": "id", "values": [self._caller.session_id]}]

    def _eligible(
        self,
        matches: list[tuple[SessionHeader, EventHit]],
        next_cursor: str | None,
        notes: dict[str, Any],
    ) -> _Page:
        kept = [
            (header, match)
            for header, match in matches
            if not (self._recall.exclude_echoes and is_echo(match))
        ]
        return _Page(kept, len(matches) - len(kept), next_cursor, notes)

    async def _help_out(
        self,
        request: RecallRequest,
        scope: str,
        event_filters: list[dict[str, Any]],
        limit: int,
    ) -> ScanOutcome | None:
        """Scan, if the query asks for it and the settings allow it."""
        if not self._recall.cjk_fallback or CJK.search(request.query) is None:
            return None
        if scope == "session":
            sessions = [await self._engine.read_header(request.session_id)]
        else:
            records = await self._engine.filter_sessions(self._session_filters(scope))
            sessions = [record.header for record in records]
        return await scan(
            self._engine,
            request.query,
            sessions=sessions,
            event_filters=event_filters,
            per_session=limit if scope == "session" else 1,
            limit=limit,
            scan_max=self._recall.cjk_fallback_scan_max,
            exclude_echoes=self._recall.exclude_echoes,
            snippet_chars=self._snippet_chars,
        )

    def _hint(self, request: RecallRequest, scope: str, outcome: ScanOutcome | None) -> str | None:
        cjk = CJK.search(request.query) is not None
        if outcome is not None and outcome.hits:
            return (
                "The index had no match; these were found by a literal scan in which every "
                f"blank-separated term had to occur in the same event.{_unfinished(outcome)}"
            )
        if outcome is not None:
            return (
                "Neither the index nor a literal scan found it. Try fewer or shorter terms"
                f"{_wider(scope)}.{_unfinished(outcome)}"
            )
        if cjk:
            if not self._recall.cjk_hint:
                return None
            return (
                "The index takes an unbroken run of such letters for one word and matches no part "
                "of it. Search for the whole run, or let the user set recall.cjk_fallback to true."
            )
        return (
            "No match. Words are matched whole and as one phrase; try a single, more specific word"
            f"{_wider(scope)}."
        )

    async def _result(
        self,
        request: RecallRequest,
        scope: Literal["project", "all", "session"],
        page: _Page,
        since: int | None,
        hint: str | None,
    ) -> RecallResult:
        titles = await read_titles(
            self._engine, [header.id for header, _ in page.hits], seconds=TITLE_SECONDS
        )
        scanned = any(isinstance(match, ScanHit) for _, match in page.hits)
        fields: dict[str, Any] = {
            "source": "dsh",
            "query": request.query,
            "scope": scope,
            "matched_by": "substring" if scanned else "index",
            "results": [_hit(header, match, titles) for header, match in page.hits],
        }
        if self._recall.exclude_echoes:
            fields["excluded_echoes"] = page.excluded_echoes
        if page.next_cursor is not None:
            bound = "" if since is None else f"{since}."
            fields["next_cursor"] = bound + page.next_cursor
        if hint is not None:
            fields["hint"] = hint
        return RecallResult.model_validate(sanitized({**fields, **page.notes}))


def _unfinished(outcome: ScanOutcome) -> str:
    if not outcome.capped:
        return ""
    return (
        f" Only the newest {outcome.scanned} of {outcome.total} sessions were scanned; session_id "
        "scans a certain one."
    )


def _hit(
    header: SessionHeader, match: EventHit | ScanHit, titles: dict[str, str]
) -> dict[str, Any]:
    event = match.document if isinstance(match, ScanHit) else match
    echo = match.echo if isinstance(match, ScanHit) else is_echo(match)
    title = titles.get(header.id)
    return {
        "session_id": header.id,
        **({} if title is None else {"title": title}),
        "cwd": header.cwd,
        "created_at": header.created_at,
        "seq": event.seq,
        "type": event.type,
        "time": event.time,
        "surface": event.surface,
        "snippet": match.snippet,
        **({"echo": True} if echo else {}),
    }


def _wider(scope: str) -> str:
    return ", or all_projects for every project" if scope == "project" else ""

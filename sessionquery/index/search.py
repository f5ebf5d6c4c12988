"""Full-text search over the sessions of one home (document 002).

`SearchIndex` is the whole of it for the engine: requests in, pages out. It is synchronous and safe
to call from several threads, which wait for one another.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.index.build.live_index import LiveIndex
from dsh_memory.sessionquery.index.lifecycle import IndexKeeper, IndexView
from dsh_memory.sessionquery.index.query.corpus_digest import (
    Entry,
    Snapshot,
    Snapshots,
    being_written,
)
from dsh_memory.sessionquery.index.query.cursors import Cursor, decode_cursor, stale_cursor
from dsh_memory.sessionquery.index.query.hits import make_hits
from dsh_memory.sessionquery.index.query.matching import (
    Match,
    Scope,
    all_matches,
    best_matches,
    find_matches,
)
from dsh_memory.sessionquery.index.query.phrase import Phrase, Tokenizer
from dsh_memory.sessionquery.index.query.requests import (
    SearchQuery,
    parse_event_search,
    parse_session_search,
)
from dsh_memory.sessionquery.index.query.vanished_rows import EarlierClosings
from dsh_memory.sessionquery.live import LiveSessions
from dsh_memory.sessionquery.model.options import EngineOptions
from dsh_memory.sessionquery.model.search import EventHit, EventPage, SessionHit, SessionPage
from dsh_memory.sessionquery.store.listing import not_found, store_failure
from dsh_memory.sessionquery.store.store import SessionStore

T = TypeVar("T")

_WAIT_SECONDS: Final = 0.05


class _Ranked(NamedTuple):
    match: Match
    entry: Entry

    @property
    def session_id(self) -> str:
        return self.entry.header.id


class SearchIndex:
    """The searchable index of one home.

    Args:
        options: Of the engine.
        store: The home's store.
        live: In-memory sessions; one of these hides a persisted session of the same id.
    """

    def __init__(self, options: EngineOptions, store: SessionStore, live: LiveSessions) -> None:
        self._options = options
        self._store = store
        self._keeper = IndexKeeper(options, store)
        self._live = LiveIndex(live)
        self._snapshots = Snapshots(self._live)
        self._earlier = EarlierClosings(store.root)
        self._tokenizer: Tokenizer | None = None
        self._mutex = threading.Lock()

    def open(self, *, signal: AbortSignal) -> None:
        """Open the index file now, so that a wrong one shows at once.

        Raises:
            SessionQueryError: ``INDEX_FAILED``, ``ABORTED``.
        """
        with self._alone(signal):
            self._keeper.open()

    def close(self) -> None:
        """Close everything; a later call opens it again."""
        with self._mutex:
            self._keeper.close()
            self._live.close()
            self._earlier.close()
            tokenizer, self._tokenizer = self._tokenizer, None
            if tokenizer is not None:
                tokenizer.close()

    def search_sessions(
        self,
        query: Any,
        *,
        session_filters: Any = None,
        event_filters: Any = None,
        limit: Any = None,
        cursor: Any = None,
        signal: AbortSignal,
    ) -> SessionPage:
        """Return a page of sessions, each with its strongest matching event.

        Arguments may be any JSON value.

        Raises:
            SessionQueryError: ``SEARCH_DISABLED``, ``INVALID_FILTER``, ``INVALID_CURSOR``,
                ``INVALID_QUERY``, ``INVALID_LIMIT``, ``ABORTED``, ``STALE_CURSOR``,
                ``PERSISTENCE_FAILED``, ``SOURCE_CONFLICT``, ``INDEX_FAILED``.
        """
        request = parse_session_search(
            self._options,
            query,
            session_filters=session_filters,
            event_filters=event_filters,
            limit=limit,
            cursor=cursor,
        )
        return self._run(lambda view: self._session_page(view, request, signal), signal)

    def search_events(
        self,
        session_id: Any,
        query: Any,
        *,
        filters: Any = None,
        limit: Any = None,
        cursor: Any = None,
        signal: AbortSignal,
    ) -> EventPage:
        """Return a page of one session's matching events, strongest first.

        Raises:
            SessionQueryError: As `search_sessions`, and ``SESSION_NOT_FOUND``.
        """
        request = parse_event_search(
            self._options, session_id, query, filters=filters, limit=limit, cursor=cursor
        )
        return self._run(lambda view: self._event_page(view, request, signal), signal)

    def _run(self, work: Callable[[IndexView], T], signal: AbortSignal) -> T:
        signal.raise_if_aborted()
        with self._alone(signal):
            return self._keeper.use(work, signal=signal)

    @contextlib.contextmanager
    def _alone(self, signal: AbortSignal) -> Iterator[None]:
        while not self._mutex.acquire(timeout=_WAIT_SECONDS):
            signal.raise_if_aborted()
        try:
            yield
        finally:
            self._mutex.release()

    def _session_page(
        self, view: IndexView, request: SearchQuery, signal: AbortSignal
    ) -> SessionPage:
        corpus = self._snapshots.current(view)
        as_of: int | None = None
        offset = 0
        if request.cursor is not None:
            cursor = decode_cursor(
                request.cursor, scope="sessions", fingerprint=request.fingerprint
            )
            as_of, offset = cursor.as_of, cursor.offset
            if corpus.digest(as_of) != cursor.digest:
                raise stale_cursor()
        phrase = self._tools.phrase(request.text)
        ranked = self._rank_sessions(view, corpus, request, phrase, as_of, signal)
        page = ranked[offset : offset + request.limit]
        next_cursor = None
        if page and len(ranked) > offset + len(page):
            moment = corpus.newest if as_of is None else as_of
            next_cursor = Cursor(
                "sessions",
                request.fingerprint,
                moment,
                corpus.digest(moment),
                offset + len(page),
            ).encode()
        return SessionPage(
            items=self._session_hits(page, phrase, as_of),
            next_cursor=next_cursor,
            unreadable_sessions=view.unreadable,
            diagnostics=self._keeper.diagnostics,
        )

    def _rank_sessions(
        self,
        view: IndexView,
        corpus: Snapshot,
        request: SearchQuery,
        phrase: Phrase,
        as_of: int | None,
        signal: AbortSignal,
    ) -> list[_Ranked]:
        part = corpus.selected(request.session_filters, self._store.root)
        scope = Scope(request.event_filters, as_of)
        several = as_of is not None or bool(part.in_memory)
        ranked: list[_Ranked] = []
        for group in filter(None, (part.persisted, part.in_memory)):
            connection = self._live.connection if group is part.in_memory else view.connection
            rows = find_matches(
                connection, self._tools, phrase, scope, comparable=several, signal=signal
            )
            best = best_matches(rows, group)
            ranked += [_Ranked(match, group[log_id]) for log_id, match in best.items()]
        if as_of is not None:
            ranked = self._with_earlier_closings(ranked, part, phrase, scope, as_of, signal)
        ranked.sort(key=lambda item: (item.match[:3], item.session_id))
        return ranked

    def _with_earlier_closings(
        self,
        ranked: list[_Ranked],
        part: Snapshot,
        phrase: Phrase,
        scope: Scope,
        as_of: int,
        signal: AbortSignal,
    ) -> list[_Ranked]:
        logs = {entry.header.id: entry.source.log for entry in part.persisted.values()}
        sources = self._earlier.sources(logs, as_of, signal=signal)
        if not sources:
            return ranked
        connection = next(iter(sources.values())).connection
        rows = find_matches(connection, self._tools, phrase, scope, signal=signal)
        best = {item.session_id: item for item in ranked}
        for log_id, match in best_matches(rows, part.persisted).items():
            entry = part.persisted[log_id]
            known = best.get(entry.header.id)
            if known is None or match < known.match:
                earlier = replace(entry, source=sources[entry.header.id])
                best[entry.header.id] = _Ranked(match, earlier)
        return list(best.values())

    def _session_hits(
        self, page: list[_Ranked], phrase: Phrase, as_of: int | None
    ) -> tuple[SessionHit, ...]:
        hits: dict[str, EventHit] = {}
        by_index: dict[int, list[_Ranked]] = {}
        for item in page:
            by_index.setdefault(id(item.entry.source.connection), []).append(item)
        for part in by_index.values():
            found = make_hits(
                part[0].entry.source.connection,
                self._tools,
                phrase,
                [item.match for item in part],
                session_ids=[item.session_id for item in part],
                as_of=as_of,
                snippet_chars=self._options.snippet_chars,
            )
            hits.update((hit.session_id, hit) for hit in found)
        written = being_written((item.entry for item in page), self._store.root)
        return tuple(
            SessionHit(
                header=replace(item.entry.header, origin=None),
                live=item.entry.live or item.session_id in written,
                persisted=item.entry.persisted is not None,
                best_match=hits[item.session_id],
            )
            for item in page
        )

    def _event_page(self, view: IndexView, request: SearchQuery, signal: AbortSignal) -> EventPage:
        entry = self._snapshots.current(view).entries.get(request.session_id or "")
        if entry is None:
            for problem in view.unreadable:
                if problem.session_id == request.session_id:
                    raise store_failure(problem)
            raise not_found(request.session_id)
        log, connection = entry.source.log, entry.source.connection
        offset = 0
        if request.cursor is not None:
            cursor = decode_cursor(request.cursor, scope="events", fingerprint=request.fingerprint)
            if cursor.digest != log.content:
                raise stale_cursor()
            offset = cursor.offset
        phrase = self._tools.phrase(request.text)
        scope = Scope(request.event_filters, log_id=log.id)
        rows = find_matches(connection, self._tools, phrase, scope, comparable=False, signal=signal)
        matches = all_matches(rows)
        page = matches[offset : offset + request.limit]
        next_cursor = None
        if page and len(matches) > offset + len(page):
            next_cursor = Cursor(
                "events", request.fingerprint, 0, log.content, offset + len(page)
            ).encode()
        items = make_hits(
            connection,
            self._tools,
            phrase,
            page,
            session_ids=[entry.header.id] * len(page),
            as_of=None,
            snippet_chars=self._options.snippet_chars,
        )
        return EventPage(
            session=replace(entry.header, origin=None),
            items=tuple(items),
            next_cursor=next_cursor,
            unreadable_sessions=view.unreadable,
            diagnostics=self._keeper.diagnostics,
        )

    @property
    def _tools(self) -> Tokenizer:
        if self._tokenizer is None:
            self._tokenizer = Tokenizer()
        return self._tokenizer

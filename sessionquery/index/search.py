"""Full-text search over the sessions of one home (document 002).

`SearchIndex` is the whole of it for the engine: requests in, pages out. It is synchronous and safe
to call from several threads, which wait for one another.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from sessionquery.abort import AbortSignal
from sessionquery.corpus import not_found, store_failure
from sessionquery.filters import ListFilter, SessionFilter, session_predicate
from sessionquery.index.catalog import IndexedLog
from sessionquery.index.cursors import Cursor, decode_cursor, stale_cursor
from sessionquery.index.earlier import EarlierClosings
from sessionquery.index.keeper import IndexKeeper, IndexView, SearchableSession
from sessionquery.index.live_index import LiveIndex
from sessionquery.index.matching import (
    Match,
    Scope,
    all_matches,
    best_matches,
    find_matches,
)
from sessionquery.index.pages import Source, digest_as_of, make_hits, newest_time
from sessionquery.index.phrase import Phrase, Tokenizer
from sessionquery.index.requests import SearchQuery, parse_event_search, parse_session_search
from sessionquery.live import LiveSessions, check_same_header
from sessionquery.locks import locked_logs
from sessionquery.model import (
    EngineOptions,
    EventHit,
    EventPage,
    SessionHeader,
    SessionHit,
    SessionPage,
    SessionRecord,
)
from sessionquery.store import SessionStore

T = TypeVar("T")

_WAIT_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Entry:
    """A session of the corpus: where its documents are, and its record apart from locks."""

    source: Source
    header: SessionHeader
    live: bool
    persisted: SearchableSession | None


@dataclass(frozen=True, slots=True)
class _Ranked:
    match: Match
    session_id: str
    entry: _Entry


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
        self._earlier = EarlierClosings(store.root)
        self._tokenizer: Tokenizer | None = None
        self._mutex = threading.Lock()
        self._persisted_of: object = None
        self._persisted: dict[str, _Entry] = {}

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
        corpus = self._corpus(view)
        cursor = (
            decode_cursor(request.cursor, scope="sessions", fingerprint=request.fingerprint)
            if request.cursor is not None
            else None
        )
        as_of = None
        if cursor is not None:
            as_of = cursor.as_of
            if digest_as_of(_sources(corpus), as_of) != cursor.digest:
                raise stale_cursor()
        offset = cursor.offset if cursor is not None else 0
        phrase = self._phrase(request)
        ranked = self._rank_sessions(view, corpus, request, phrase, as_of, signal)
        page = ranked[offset : offset + request.limit]
        next_cursor = None
        if len(ranked) > offset + len(page) and page:
            if as_of is None:
                as_of = newest_time(entry.source.log for entry in corpus.values())
            digest = cursor.digest if cursor else digest_as_of(_sources(corpus), as_of)
            next_cursor = Cursor(
                "sessions", request.fingerprint, as_of, digest, offset + len(page)
            ).encode()
        return SessionPage(
            items=self._session_hits(page, phrase, as_of if cursor else None),
            next_cursor=next_cursor,
            unreadable_sessions=view.unreadable,
            diagnostics=self._keeper.diagnostics,
        )

    def _rank_sessions(
        self,
        view: IndexView,
        corpus: dict[str, _Entry],
        request: SearchQuery,
        phrase: Phrase,
        as_of: int | None,
        signal: AbortSignal,
    ) -> list[_Ranked]:
        allowed = self._allowed(corpus, request.session_filters)
        scope = Scope(request.event_filters, as_of)
        persisted: dict[int, tuple[str, _Entry]] = {}
        in_memory: dict[int, tuple[str, _Entry]] = {}
        for session_id, entry in allowed.items():
            group = in_memory if entry.live else persisted
            group[entry.source.log.id] = (session_id, entry)
        ranked: list[_Ranked] = []
        several = as_of is not None or bool(in_memory)
        for group in filter(None, (persisted, in_memory)):
            connection = self._live.connection if group is in_memory else view.connection
            rows = find_matches(
                connection, self._tools, phrase, scope, comparable=several, signal=signal
            )
            ranked += [
                _Ranked(match, *group[log_id])
                for log_id, match in best_matches(rows, group).items()
            ]
        if as_of is not None:
            ranked = self._with_earlier_closings(ranked, persisted, phrase, scope, signal)
        ranked.sort(key=lambda item: (item.match[:3], item.session_id))
        return ranked

    def _with_earlier_closings(
        self,
        ranked: list[_Ranked],
        persisted: dict[int, tuple[str, _Entry]],
        phrase: Phrase,
        scope: Scope,
        signal: AbortSignal,
    ) -> list[_Ranked]:
        assert scope.as_of is not None
        logs = {session_id: entry.source.log for session_id, entry in persisted.values()}
        sources = self._earlier.sources(logs, scope.as_of, signal=signal)
        if not sources:
            return ranked
        connection = next(iter(sources.values())).connection
        rows = find_matches(connection, self._tools, phrase, scope, signal=signal)
        best = {item.session_id: item for item in ranked}
        for log_id, match in best_matches(rows, persisted).items():
            session_id, entry = persisted[log_id]
            known = best.get(session_id)
            if known is None or match < known.match:
                earlier = replace(entry, source=sources[session_id])
                best[session_id] = _Ranked(match, session_id, earlier)
        return list(best.values())

    def _session_hits(
        self, page: list[_Ranked], phrase: Phrase, as_of: int | None
    ) -> tuple[SessionHit, ...]:
        hits: dict[str, EventHit] = {}
        for connection in {id(item.entry.source.connection): item for item in page}.values():
            part = [
                item
                for item in page
                if item.entry.source.connection is connection.entry.source.connection
            ]
            found = make_hits(
                connection.entry.source.connection,
                self._tools,
                phrase,
                [item.match for item in part],
                session_ids=[item.session_id for item in part],
                as_of=as_of,
                snippet_chars=self._options.snippet_chars,
            )
            hits.update(zip((item.session_id for item in part), found, strict=True))
        locked = self._locked(item.entry for item in page)
        return tuple(
            SessionHit(
                header=replace(item.entry.header, origin=None),
                live=item.entry.live or item.session_id in locked,
                persisted=item.entry.persisted is not None,
                best_match=hits[item.session_id],
            )
            for item in page
        )

    def _event_page(self, view: IndexView, request: SearchQuery, signal: AbortSignal) -> EventPage:
        corpus = self._corpus(view)
        entry = corpus.get(request.session_id or "")
        if entry is None:
            for problem in view.unreadable:
                if problem.session_id == request.session_id:
                    raise store_failure(problem)
            raise not_found(request.session_id)
        log = entry.source.log
        offset = 0
        if request.cursor is not None:
            cursor = decode_cursor(request.cursor, scope="events", fingerprint=request.fingerprint)
            if cursor.digest != log.content:
                raise stale_cursor()
            offset = cursor.offset
        phrase = self._phrase(request)
        scope = Scope(request.event_filters, log_id=log.id)
        matches = all_matches(
            find_matches(
                entry.source.connection,
                self._tools,
                phrase,
                scope,
                comparable=False,
                signal=signal,
            )
        )
        page = matches[offset : offset + request.limit]
        next_cursor = None
        if len(matches) > offset + len(page) and page:
            next_cursor = Cursor(
                "events", request.fingerprint, 0, log.content, offset + len(page)
            ).encode()
        items = make_hits(
            entry.source.connection,
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

    def _corpus(self, view: IndexView) -> dict[str, _Entry]:
        if self._persisted_of is not view.sessions:
            self._persisted_of = view.sessions
            self._persisted = {
                session_id: _Entry(
                    Source(view.connection, session.log), session.listed.header, False, session
                )
                for session_id, session in view.sessions.items()
            }
        live: dict[str, IndexedLog] = self._live.synchronize()
        if not live:
            return self._persisted
        corpus = dict(self._persisted)
        for session_id, log in live.items():
            assert isinstance(log.header, SessionHeader)
            persisted = view.sessions.get(session_id)
            if persisted is not None:
                check_same_header(log.header, persisted.listed.header)
            corpus[session_id] = _Entry(
                Source(self._live.connection, log), log.header, True, persisted
            )
        return corpus

    def _allowed(
        self, corpus: dict[str, _Entry], filters: tuple[SessionFilter, ...]
    ) -> dict[str, _Entry]:
        if not filters:
            return corpus
        needs_locks = any(
            isinstance(clause, ListFilter) and clause.kind == "availability" for clause in filters
        )
        locked = self._locked(corpus.values()) if needs_locks else frozenset()
        matches = session_predicate(filters)
        return {
            session_id: entry
            for session_id, entry in corpus.items()
            if matches(
                SessionRecord(
                    header=entry.header,
                    live=entry.live or session_id in locked,
                    persisted=entry.persisted is not None,
                )
            )
        }

    def _locked(self, entries: Any) -> frozenset[str]:
        persisted = {
            (entry.persisted.listed.found.project, entry.persisted.listed.found.directory): entry
            for entry in entries
            if entry.persisted is not None and not entry.live
        }
        locked = locked_logs(
            self._store.root, (entry.persisted.listed.found for entry in persisted.values())
        )
        return frozenset(persisted[place].header.id for place in locked)

    @property
    def _tools(self) -> Tokenizer:
        if self._tokenizer is None:
            self._tokenizer = Tokenizer()
        return self._tokenizer

    def _phrase(self, request: SearchQuery) -> Phrase:
        return self._tools.phrase(request.text)


def _sources(corpus: dict[str, _Entry]) -> Iterator[tuple[str, Source]]:
    return ((session_id, entry.source) for session_id, entry in corpus.items())

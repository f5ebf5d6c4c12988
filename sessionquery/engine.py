"""The asynchronous face of the session query engine (document 002).

Each method runs the synchronous core in a worker thread. When the calling task is cancelled, the
core is told through its `AbortSignal`, the thread is awaited, and only then the cancellation goes
on: no work of a cancelled call is left behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import SEARCH_DISABLED, SessionQueryError
from dsh_memory.sessionquery.live import LiveSessions
from dsh_memory.sessionquery.model.options import EngineOptions
from dsh_memory.sessionquery.model.search import EventPage, SessionPage
from dsh_memory.sessionquery.model.sessions import SessionHeader
from dsh_memory.sessionquery.store.store import SessionStore

if TYPE_CHECKING:
    from dsh_memory.sessionquery.index.search import SearchIndex
    from dsh_memory.sessionquery.model.reads import (
        EventDocument,
        EventRecord,
        EventTrace,
        EventWindow,
        Observation,
        SessionLog,
        SessionTitle,
        SessionTrace,
        SurfaceView,
        TitleResult,
        TitleSnapshot,
    )
    from dsh_memory.sessionquery.model.search import UnreadableSession
    from dsh_memory.sessionquery.model.sessions import SessionRecord
    from dsh_memory.sessionquery.reads.reader import SessionReader
    from dsh_memory.sessionquery.reads.summaries import SessionSummary

T = TypeVar("T")


class SessionQueryEngine:
    """Exact reads, filters, traces and full-text search over one DSH home.

    Arguments may have any JSON type; what does not fit is answered with the code that document 002
    gives it. Every method raises `SessionQueryError` and takes an optional `signal`.

    Args:
        options: Where and how to read.
        live: In-memory sessions of an embedding program, which win over persisted ones.
    """

    def __init__(self, options: EngineOptions, *, live: LiveSessions | None = None) -> None:
        self.options = options
        self.live = live if live is not None else LiveSessions()
        self.store = SessionStore(options.home, policy=options.unreadable)
        self._index: SearchIndex | None = None
        self._index_lock = threading.Lock()

    async def __aenter__(self) -> SessionQueryEngine:
        if self.options.open_at == "startup":
            await self._call(lambda *, signal: self._opened_index().open(signal=signal), None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the index; waits for nothing else. May be called twice."""
        with self._index_lock:
            index, self._index = self._index, None
        if index is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(index.close)

    # the corpus

    async def list_sessions(
        self, *, signal: AbortSignal | None = None
    ) -> tuple[SessionRecord, ...]:
        """Return every session, newest first."""
        return await self._call(self._reader.list_sessions, signal)

    async def filter_sessions(
        self, filters: Any, *, signal: AbortSignal | None = None
    ) -> tuple[SessionRecord, ...]:
        """Return the sessions that satisfy every clause (``id cwd parent created-at
        availability``), in the order of `list_sessions`."""
        return await self._call(partial(self._reader.filter_sessions, filters), signal)

    async def summarize_sessions(
        self, filters: Any = (), *, signal: AbortSignal | None = None
    ) -> tuple[SessionSummary, ...]:
        """Return title and number of events of the sessions that satisfy `filters`, newest first.

        Reads their logs as a whole; a log that cannot be read is marked with its error.
        """
        from dsh_memory.sessionquery.reads.summaries import summarize

        def work(*, signal: AbortSignal) -> tuple[SessionSummary, ...]:
            records = self._reader.filter_sessions(list(filters), signal=signal)
            return summarize(self._reader, records, signal=signal)

        return await self._call(work, signal)

    async def list_unreadable(
        self, *, signal: AbortSignal | None = None
    ) -> tuple[UnreadableSession, ...]:
        """Name every log that is not offered or not readable, each with its reason.

        Reads every log of the store as a whole.
        """
        return await self._call(self._reader.list_unreadable, signal)

    async def trace_session(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> SessionTrace:
        """Return the ancestors and the tree of descendants of a session."""
        return await self._call(partial(self._reader.trace_session, session_id), signal)

    # one session

    async def list_events(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> tuple[EventRecord, ...]:
        """Classify every event of a session as current, shadowed or log-only."""
        return await self._call(partial(self._reader.list_events, session_id), signal)

    async def filter_events(
        self, session_id: Any, filters: Any, *, signal: AbortSignal | None = None
    ) -> tuple[EventDocument, ...]:
        """Return the events with text that satisfy every clause (``seq time type surface
        text``)."""
        return await self._call(partial(self._reader.filter_events, session_id, filters), signal)

    async def read_session(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> SessionLog:
        """Return the whole log of a session."""
        return await self._call(partial(self._reader.read_session, session_id), signal)

    async def read_surface(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> SurfaceView:
        """Return the current surface of a session in the model's order."""
        return await self._call(partial(self._reader.read_surface, session_id), signal)

    async def read_event(
        self,
        session_id: Any,
        seq: Any,
        *,
        before: Any = 0,
        after: Any = 0,
        signal: AbortSignal | None = None,
    ) -> EventWindow:
        """Return an event with its neighbours; `before` and `after` count events."""
        read = partial(self._reader.read_event, session_id, seq, before=before, after=after)
        return await self._call(read, signal)

    async def read_header(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> SessionHeader:
        """Return the authoritative header, read from the log's first line or frame only."""

        def read(*, signal: AbortSignal) -> SessionHeader:
            signal.raise_if_aborted()
            live = self.live.get(session_id)
            if live is not None:
                return live.header
            return self.store.observed(session_id, signal=signal).header

        return await self._call(read, signal)

    async def trace_event(
        self, session_id: Any, seq: Any, *, signal: AbortSignal | None = None
    ) -> EventTrace:
        """Return what an event replaced, cites, and was replaced and cited by."""
        return await self._call(partial(self._reader.trace_event, session_id, seq), signal)

    async def observe_session(
        self,
        session_id: Any,
        *,
        projection_mode: Any = None,
        signal: AbortSignal | None = None,
    ) -> Observation:
        """Return a session's log by its directory, whatever the rest of the store is like.

        `projection_mode` is accepted for the original's sake; projections are never made.
        """
        return await self._call(partial(self._reader.observe_session, session_id), signal)

    # titles

    async def read_title(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> SessionTitle | None:
        """Return the last title of a session, None if it has none."""
        return (await self.read_title_snapshot(session_id, signal=signal)).title

    async def read_title_snapshot(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> TitleSnapshot:
        """Return header and title of a session."""
        return await self._call(partial(self._reader.read_title_snapshot, session_id), signal)

    async def read_titles(
        self, session_ids: Iterable[Any], *, signal: AbortSignal | None = None
    ) -> tuple[TitleResult, ...]:
        """Return header and title, or the error, of each distinct id in order of first mention."""
        return await self._call(partial(self._reader.read_titles, tuple(session_ids)), signal)

    # search

    async def search_sessions(
        self,
        query: Any,
        *,
        session_filters: Any = None,
        event_filters: Any = None,
        limit: Any = None,
        cursor: Any = None,
        signal: AbortSignal | None = None,
    ) -> SessionPage:
        """Search the corpus; one hit a session, its strongest matching event.

        Args:
            query: A literal phrase.
            session_filters: Clauses as in `filter_sessions`.
            event_filters: Clauses as in `filter_events`, without ``text``.
            limit: Hits a page, 1 to the configured maximum; None is the default.
            cursor: `next_cursor` of the page before.
            signal: Ends the search with ``ABORTED``.
        """
        self._check_search_enabled()
        search = partial(
            self._opened_index().search_sessions,
            query,
            session_filters=session_filters,
            event_filters=event_filters,
            limit=limit,
            cursor=cursor,
        )
        return await self._call(search, signal)

    async def search_events(
        self,
        session_id: Any,
        query: Any,
        *,
        filters: Any = None,
        limit: Any = None,
        cursor: Any = None,
        signal: AbortSignal | None = None,
    ) -> EventPage:
        """Search one session; arguments as in `search_sessions`."""
        self._check_search_enabled()
        search = partial(
            self._opened_index().search_events,
            session_id,
            query,
            filters=filters,
            limit=limit,
            cursor=cursor,
        )
        return await self._call(search, signal)

    def _check_search_enabled(self) -> None:
        if self.options.open_at == "never":
            raise SessionQueryError(
                'Search is switched off: the configuration has index.open_at = "never".',
                code=SEARCH_DISABLED,
                hint="Switch it on: dsh-memory config set index.open_at first-search",
            )

    @cached_property
    def _reader(self) -> SessionReader:
        # A process that only searches loads none of the reading side.
        from dsh_memory.sessionquery.reads.reader import SessionReader

        return SessionReader(
            self.store,
            self.live,
            window_max=self.options.read_window_max,
            concurrency=self.options.inspect_concurrency,
        )

    def _opened_index(self) -> SearchIndex:
        from dsh_memory.sessionquery.index.search import SearchIndex

        with self._index_lock:
            if self._index is None:
                self._index = SearchIndex(self.options, self.store, self.live)
            return self._index

    async def _call(self, work: Callable[..., T], signal: AbortSignal | None) -> T:
        """Run ``work(signal=...)`` in a worker thread; abort it when this task is cancelled."""
        own = AbortSignal()
        forget = signal.on_abort(own.abort) if signal is not None else None
        outcome: list[T] = []
        failure: list[BaseException] = []

        def run() -> None:
            try:
                outcome.append(work(signal=own))
            except BaseException as error:  # noqa: BLE001 (raised again in the calling task)
                failure.append(error)

        async def watch() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                own.abort()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                # Let the watcher start: a task that is cancelled before it runs does nothing.
                await anyio.lowlevel.checkpoint()
                await anyio.to_thread.run_sync(run)
                group.cancel_scope.cancel()
        finally:
            if forget is not None:
                forget()
        await anyio.lowlevel.checkpoint_if_cancelled()
        if failure:
            raise failure[0]
        return outcome[0]

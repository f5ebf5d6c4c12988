"""What the workflow needs from the stages around it, so that each can stand alone in a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.sessionquery.abort import AbortSignal

if TYPE_CHECKING:
    from dsh_memory.sessionquery.model.reads import (
        EventDocument,
        EventRecord,
        EventTrace,
        EventWindow,
        SessionLog,
        SessionTrace,
        TitleResult,
    )
    from dsh_memory.sessionquery.model.search import EventPage, SessionPage
    from dsh_memory.sessionquery.model.sessions import SessionHeader, SessionRecord


class MemoryEngine(Protocol):
    """The part of the session query engine that search and read use."""

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
        """One native page over all sessions that pass the filters."""

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
        """One native page of events of one session."""

    async def read_event(
        self,
        session_id: Any,
        seq: Any,
        *,
        before: Any = 0,
        after: Any = 0,
        signal: AbortSignal | None = None,
    ) -> EventWindow:
        """A window of raw events around `seq`."""

    async def read_header(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> SessionHeader:
        """The header as the log itself says it, never as the index remembers it."""


class HistoryEngine(MemoryEngine, Protocol):
    """What the tools of documents 002 and 004 use beyond that."""

    async def filter_sessions(
        self, filters: Any, *, signal: AbortSignal | None = None
    ) -> tuple[SessionRecord, ...]:
        """Sessions that satisfy every clause, newest first."""

    async def filter_events(
        self, session_id: Any, filters: Any, *, signal: AbortSignal | None = None
    ) -> tuple[EventDocument, ...]:
        """Events with text that satisfy every clause."""

    async def list_events(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> tuple[EventRecord, ...]:
        """Every event of a session."""

    async def read_session(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> SessionLog:
        """The whole log of a session."""

    async def read_titles(
        self, session_ids: Iterable[Any], *, signal: AbortSignal | None = None
    ) -> tuple[TitleResult, ...]:
        """Title or error of each session."""

    async def trace_session(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> SessionTrace:
        """The lineage around a session."""

    async def trace_event(
        self, session_id: Any, seq: Any, *, signal: AbortSignal | None = None
    ) -> EventTrace:
        """Replacements and sources of an event."""


class EndpointSource(Protocol):
    """Where a ready model endpoint comes from; the first call may start and load things."""

    async def endpoint(self) -> Endpoint:
        """Return the endpoint, or raise why there is none."""

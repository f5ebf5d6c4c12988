"""What the workflow needs from the stages around it, so that each can stand alone in a test."""

from __future__ import annotations

from typing import Any, Protocol

from runtime.endpoint import Endpoint
from sessionquery.abort import AbortSignal
from sessionquery.model import EventPage, EventWindow, SessionHeader, SessionPage


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


class EndpointSource(Protocol):
    """Where a ready model endpoint comes from; the first call may start and load things."""

    async def endpoint(self) -> Endpoint:
        """Return the endpoint, or raise why there is none."""

"""An engine in memory for questions of order and cancellation, and settings from plain values."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.runtime.config.settings import Settings
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import SESSION_NOT_FOUND, SessionQueryError
from dsh_memory.sessionquery.model.reads import EventWindow
from dsh_memory.sessionquery.model.search import EventHit, EventPage, SessionHit, SessionPage
from dsh_memory.sessionquery.model.sessions import SessionHeader

Hook = Callable[[], Awaitable[None]]


def make_header(session_id: str = "root", **changes: Any) -> SessionHeader:
    values: dict[str, Any] = {
        "created_at": 123,
        "is_seeded": False,
        "delegation_depth": 0,
    } | changes
    return SessionHeader(id=session_id, **values)


def make_match(session_id: str = "root", seq: int = 5, **changes: Any) -> EventHit:
    values: dict[str, Any] = {
        "type": "assistant/message",
        "time": 456,
        "surface": "current",
        "snippet": "database evidence",
    } | changes
    return EventHit(session_id=session_id, seq=seq, **values)


def make_hit(session_id: str, snippet: str = "database evidence", **changes: Any) -> SessionHit:
    header = changes.pop("header", None) or make_header(session_id)
    live = changes.pop("live", False)
    return SessionHit(
        header=header,
        live=live,
        persisted=True,
        best_match=make_match(session_id, snippet=snippet, **changes),
    )


@dataclass
class MemoryEngineDouble:
    """Answers from plain values, records every call, and can run a hook inside one."""

    page: SessionPage | EventPage | Exception = field(default_factory=lambda: SessionPage(()))
    window: EventWindow | Exception | None = None
    headers: dict[str, SessionHeader | Exception] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    during: dict[str, Hook] = field(default_factory=dict)

    async def _answer(self, call: tuple[Any, ...], value: Any) -> Any:
        self.calls.append(call)
        hook = self.during.get(call[0])
        if hook is not None:
            await hook()
        if isinstance(value, Exception):
            raise value
        return value

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
        call = ("search_sessions", query, session_filters, event_filters, limit, cursor)
        return await self._answer(call, self.page)  # type: ignore[no-any-return]

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
        call = ("search_events", session_id, query, filters, limit, cursor)
        return await self._answer(call, self.page)  # type: ignore[no-any-return]

    async def read_event(
        self,
        session_id: Any,
        seq: Any,
        *,
        before: Any = 0,
        after: Any = 0,
        signal: AbortSignal | None = None,
    ) -> EventWindow:
        call = ("read_event", session_id, seq, before, after)
        return await self._answer(call, self.window)  # type: ignore[no-any-return]

    async def read_header(
        self, session_id: Any, *, signal: AbortSignal | None = None
    ) -> SessionHeader:
        missing = SessionQueryError("unknown", code=SESSION_NOT_FOUND)
        value = self.headers.get(session_id, missing)
        return await self._answer(("read_header", session_id), value)  # type: ignore[no-any-return]

    @property
    def names(self) -> list[str]:
        return [call[0] for call in self.calls]


@dataclass
class FixedEndpoint:
    """An endpoint that is simply there; counts how often it is asked for."""

    value: Endpoint = field(default_factory=lambda: Endpoint("http://127.0.0.1:1", "judge", 8192))
    asked: int = 0

    async def endpoint(self) -> Endpoint:
        self.asked += 1
        return self.value


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def header() -> Callable[..., SessionHeader]:
    return make_header


@pytest.fixture
def match() -> Callable[..., EventHit]:
    return make_match


@pytest.fixture
def hit() -> Callable[..., SessionHit]:
    return make_hit


@pytest.fixture
def engine() -> MemoryEngineDouble:
    return MemoryEngineDouble()


@pytest.fixture
def service() -> FixedEndpoint:
    return FixedEndpoint()


@pytest.fixture
def make_settings() -> Callable[..., Settings]:
    def make(**sections: Mapping[str, Any]) -> Settings:
        return Settings.model_validate(sections)

    return make


@pytest.fixture
def open_workflow(
    engine: MemoryEngineDouble, service: FixedEndpoint, make_settings: Callable[..., Settings]
) -> Callable[..., MemoryWorkflow]:
    """A workflow over the double; keyword arguments are sections of the settings."""

    def make(**sections: Mapping[str, Any]) -> MemoryWorkflow:
        return MemoryWorkflow(engine, make_settings(**sections), service=service)

    return make


@pytest.fixture
def page_of(
    engine: MemoryEngineDouble,
) -> Callable[..., None]:
    """Let the engine answer with these session hits, all of them main sessions."""

    def set_page(*hits: SessionHit, next_cursor: str | None = None) -> None:
        engine.page = SessionPage(hits, next_cursor=next_cursor)
        for item in hits:
            engine.headers.setdefault(item.header.id, item.header)

    return set_page


@pytest.fixture
def window_of(engine: MemoryEngineDouble) -> Callable[..., None]:
    """Let the engine answer reads with these events."""

    def set_window(
        *events: dict[str, Any],
        target: int = 5,
        session: SessionHeader | None = None,
        inherited: int = 0,
    ) -> None:
        chosen = next((event for event in events if event["seq"] == target), events[0])
        engine.window = EventWindow(
            session=session or make_header(),
            inherited_event_count=inherited,
            target=chosen,
            events=events,
            start_seq=events[0]["seq"],
            end_seq=events[-1]["seq"],
        )

    return set_window


@pytest.fixture
def said() -> Callable[..., dict[str, Any]]:
    """A user message event."""

    def make(seq: int, text: str) -> dict[str, Any]:
        data = {"role": "user", "content": [{"type": "text", "text": text}]}
        return {"seq": seq, "type": "user/message", "time": seq + 100, "data": data}

    return make


class PlainHome:
    """Writes small session logs of generation 4 into a home of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._created = 1_796_200_000_000

    def add(self, session_id: str, *rows: dict[str, Any], cwd: str = "/w", **header: Any) -> Path:
        """Write one finished turn that holds `rows`; returns the log."""
        self._created += 1000
        head = {
            "type": "session",
            "version": 4,
            "id": session_id,
            "createdAt": self._created,
            "cwd": cwd,
            "isSeeded": False,
            "delegationDepth": 0,
        } | header
        events = [
            {"type": "turn/start", "data": {"turn": 1}},
            {"type": "step/start", "data": {"turn": 1, "step": 1}},
            *rows,
            {"type": "step/end", "data": {"turn": 1, "step": 1}},
            {"type": "turn/end", "data": {"turn": 1, "reason": {"kind": "completed"}}},
        ]
        numbered = [
            {**event, "seq": seq, "time": self._created + seq} for seq, event in enumerate(events)
        ]
        project = "--" + cwd.strip("/").replace("/", "-") + "--"
        folder = self.path / "sessions" / project / session_id
        folder.mkdir(parents=True)
        log = folder / "session.v4.jsonl"
        log.write_text("".join(json.dumps(line) + "\n" for line in [head, *numbered]))
        return log

    @staticmethod
    def user(text: str) -> dict[str, Any]:
        message = {
            "content": [{"type": "text", "text": text}],
            "source": {"kind": "user"},
            "role": "user",
            "id": "u-" + text[:20],
        }
        return {"type": "user/message", "data": message, "surfaceOp": "append"}

    @staticmethod
    def call(tool: str, arguments: str, answer: str) -> tuple[dict[str, Any], ...]:
        """The only rows of a turn: a message that is nothing but one call, the call, its result."""
        place = {"turn": 1, "step": 1}
        usage = {"inputTokens": 1, "outputTokens": 1}
        block = {"type": "tool-call", "id": "c1", "name": tool, "arguments": arguments}
        asked: dict[str, Any] = {"role": "assistant", "content": [block], "id": "a1"}
        asked["source"] = {"kind": "model", "provider": "p", "model": "m"}
        said = {
            "role": "tool",
            "toolCallId": "c1",
            "isError": False,
            "content": [{"type": "text", "text": answer}],
            "source": {"kind": "tool", "callId": "c1"},
            "id": "r1",
        }
        call = {"callId": "c1", "name": tool, "arguments": arguments}
        return (
            {
                "type": "assistant/message",
                "data": {**place, "message": asked, "usage": usage, "stream": []},
                "surfaceOp": "append",
            },
            {"type": "tool/call", "data": {**place, **call}},
            {
                "type": "tool/result",
                "data": {**place, "message": said},
                "sourceEventSeqs": [3],
                "surfaceOp": "append",
            },
        )


@pytest.fixture
def plain_home(tmp_path: Path) -> PlainHome:
    return PlainHome(tmp_path / "home")


@pytest.fixture
def recorded_home(tmp_path: Path) -> Callable[[str], Path]:
    """Unpack a recorded home by its letter."""

    def unpack(letter: str) -> Path:
        data = Path(__file__).parent.parent / "data"
        with tarfile.open(data / "homes" / f"home-{letter}.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
        return tmp_path / f"home-{letter}"

    return unpack

"""What the engine answers with: frozen records, in document 002's terms in snake_case.

Times are integers, milliseconds since the Unix epoch. `seq` is the zero-based event number in a
session. Absent optional values are None here and left out of the JSON form (`sessionquery.wire`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sessionquery.errors import SessionQueryError

Surface = Literal["current", "shadowed", "log-only"]
Event = dict[str, Any]
"""One log event as JSON: ``type, seq, time, data`` and optionally ``surfaceOp, sourceEventSeqs
(unpacked), ignorable``."""


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """The immutable first line of a session log, always in generation-4 form.

    `delegation_depth` is None only for live sessions that an embedding program made without one.
    """

    id: str
    created_at: int
    is_seeded: bool
    delegation_depth: int | None
    cwd: str | None = None
    parent_session: str | None = None
    origin: str | None = None
    agent_preset: str | None = None
    version: int = 4

    @property
    def is_main(self) -> bool:
        """Whether this is a main session (document 000), neither spawned nor forked as subagent."""
        return self.origin != "subagent" and (self.delegation_depth or 0) <= 0


@dataclass(frozen=True, slots=True)
class SessionRecord:
    header: SessionHeader
    live: bool
    persisted: bool
    format_status: Literal["current", "migration-required"] = "current"


@dataclass(frozen=True, slots=True)
class EventRecord:
    session_id: str
    seq: int
    type: str
    time: int
    surface: Surface


@dataclass(frozen=True, slots=True)
class EventDocument:
    """An event with its searchable text."""

    session_id: str
    seq: int
    type: str
    time: int
    surface: Surface
    text: str


@dataclass(frozen=True, slots=True)
class EventHit:
    """A search match; `snippet` has at most ``snippet_chars`` code points.

    `tools` names the tools that the event calls (``tool/call``, ``tool/result``: the one tool; an
    assistant message that is nothing but tool calls: all of them), else it is empty. It is not
    part of the wire form.
    """

    session_id: str
    seq: int
    type: str
    time: int
    surface: Surface
    snippet: str
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A session with its strongest matching event; its header has no `origin`."""

    header: SessionHeader
    live: bool
    persisted: bool
    best_match: EventHit


@dataclass(frozen=True, slots=True)
class UnreadableSession:
    """A session that was left out because ``store.unreadable`` is ``skip``."""

    path: str
    code: str
    reason: str
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class SessionPage:
    items: tuple[SessionHit, ...]
    next_cursor: str | None = None
    unreadable_sessions: tuple[UnreadableSession, ...] = ()
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventPage:
    session: SessionHeader
    items: tuple[EventHit, ...]
    next_cursor: str | None = None
    unreadable_sessions: tuple[UnreadableSession, ...] = ()
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventWindow:
    session: SessionHeader
    inherited_event_count: int
    target: Event
    events: tuple[Event, ...]
    start_seq: int
    end_seq: int


@dataclass(frozen=True, slots=True)
class SessionLog:
    session: SessionHeader
    inherited_event_count: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class SurfaceView:
    session: SessionHeader
    inherited_event_count: int
    captured_through_seq: int
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    source: Literal["prepared", "live"]
    header: SessionHeader
    inherited_event_count: int
    events: tuple[Event, ...]
    cursor: int


@dataclass(frozen=True, slots=True)
class SessionTitle:
    title: str
    message_seqs: tuple[int, ...]
    source: dict[str, Any]
    event_seq: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class TitleSnapshot:
    """A session with its title, None if it has none."""

    session: SessionHeader
    title: SessionTitle | None = None


@dataclass(frozen=True, slots=True)
class TitleResult:
    """The outcome for one id of a batch read: a value or the error."""

    session_id: str
    value: TitleSnapshot | None = None
    error: SessionQueryError | None = None


@dataclass(frozen=True, slots=True)
class LineageNode:
    session: SessionRecord
    descendants: tuple[LineageNode, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionTrace:
    target: SessionRecord
    ancestors: tuple[SessionRecord, ...]
    descendants: tuple[LineageNode, ...]
    complete: bool
    root: SessionRecord | None = None
    unresolved_parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class EventTrace:
    """How one event relates to others, all by number.

    Attributes:
        replacement_chain: Who replaced it, who replaced that one, and so on.
        replaced_event_seqs: What it replaced directly, in list order of the surface.
        source_event_seqs: What it cites, in stored order.
        derived_event_seqs: Later events that cite it.
    """

    session: SessionHeader
    target: EventRecord
    replacement_chain: tuple[int, ...]
    replaced_event_seqs: tuple[int, ...]
    source_event_seqs: tuple[int, ...]
    derived_event_seqs: tuple[int, ...]
    replaced_by: int | None = None


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Settings of the engine (document 002, "configuration"; defaults of ours where they differ).

    Attributes:
        home: The DSH home; logs are below ``home/sessions``.
        index_path: None for the home's file in the user cache, ``":memory:"``, or a path.
        open_at: When the index is opened: ``startup``, ``first-search`` or ``never`` (search off).
        snippet_chars: Snippet length in code points.
        read_window_max: Largest ``before``/``after`` of `read_event`, in events.
        inspect_concurrency: How many logs one batch read opens at once.
        unreadable: ``fail`` (as the original) or ``skip`` (left out and named in the result).
    """

    home: str
    index_path: str | None = None
    open_at: Literal["startup", "first-search", "never"] = "first-search"
    default_limit: int = 20
    max_limit: int = 100
    snippet_chars: int = 240
    read_window_max: int = 50
    inspect_concurrency: int = 4
    unreadable: Literal["fail", "skip"] = "fail"

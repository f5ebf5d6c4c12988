"""What the exact reads and traces answer with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dsh_memory.sessionquery.errors import SessionQueryError
from dsh_memory.sessionquery.model.sessions import Event, SessionHeader, SessionRecord, Surface


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
    title: str | None
    """None if the event that should give one does not."""
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

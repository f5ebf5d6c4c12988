"""Reading one log: all its events, or a scan that keeps only what is searchable."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sessionquery.abort import AbortSignal
from sessionquery.discovery import FoundLog
from sessionquery.documents import TEXT_PARTS, PayloadError, event_text
from sessionquery.errors import PERSISTENCE_FAILED, SessionQueryError
from sessionquery.eventstream import EventStream
from sessionquery.family import ChildrenOf, no_children
from sessionquery.header import FormatStatus, format_status_of
from sessionquery.headerfile import read_header
from sessionquery.index.tools import ToolNames
from sessionquery.model import Event, SessionHeader, Surface
from sessionquery.surfacefold import CURRENT, SHADOWED

__all__ = [
    "SURFACE_NAMES",
    "ChildrenOf",
    "EventStream",
    "FormatStatus",
    "LoadedLog",
    "ScannedLog",
    "format_status_of",
    "load_log",
    "no_children",
    "read_header",
    "scan_log",
]

SURFACE_NAMES: tuple[Surface, Surface, Surface] = ("log-only", "current", "shadowed")
"""Names of the codes in `ScannedLog.surfaces`."""
assert (CURRENT, SHADOWED) == (1, 2)


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """A whole log.

    Attributes:
        header: In generation-4 form.
        inherited_event_count: How many events stem from the parent.
        events: Every event, closing rows included; ``events[n]["seq"] == n``.
        surfaces: One entry an event.
        surface_order: Numbers of the current events in list order (not always ascending).
        replaced_by: For each shadowed event the event that replaced it.
        row_count: How many of the events are on disk; the rest are closing rows.
        format_status: Whether the log is of an older generation.
    """

    header: SessionHeader
    inherited_event_count: int
    events: list[Event]
    surfaces: list[Surface]
    surface_order: list[int]
    replaced_by: dict[int, int]
    row_count: int
    format_status: FormatStatus


def load_log(
    root: Path, found: FoundLog, *, signal: AbortSignal, children: ChildrenOf = no_children
) -> LoadedLog:
    """Read and check a whole log.

    Args:
        root: The sessions directory.
        found: The log.
        signal: Polled once a batch of rows.
        children: Tells the listed subagents of the session; only asked for logs of an older
            generation, whose list of subagents is completed from the store.

    Raises:
        SessionQueryError: ``CORRUPT_SESSION`` for a log that breaks the format's rules,
            ``PERSISTENCE_FAILED`` for one that this program cannot interpret or read,
            ``INVALID_SURFACE``, ``ABORTED``.
    """
    with EventStream(root, found, signal=signal, children=children) as stream:
        events = list(stream)
        stream.rules.check_surface()
        codes = stream.rules.classification(len(events))
        return LoadedLog(
            header=stream.header,
            inherited_event_count=stream.rules.inherited_event_count,
            events=events,
            surfaces=[SURFACE_NAMES[code] for code in codes],
            surface_order=stream.rules.surface,
            replaced_by=stream.rules.replaced_by,
            row_count=stream.row_count,
            format_status=format_status_of(found.revision.generation),
        )


class ScannedLog:
    """One pass over a log that yields its documents and keeps no payload.

    Iterate it once, inside ``with``; each item is ``(seq, type, time, text, tools)`` of an event
    with text (`sessionquery.index.tools`). Only when the iteration has ended without an error is
    the log valid: a consumer that stores documents must be able to undo it. Then these hold:

    Attributes:
        header: Known before the iteration.
        revision: Of the bytes that are read (taken from the open file, before reading).
        format_status: Known before the iteration.
        inherited_event_count: As in `LoadedLog`.
        event_count: Events, closing rows included.
        row_count: Events on disk (after migration); events from this number on are closing rows,
            which later appends may replace by other rows.
        times: Time (ms) of each of the `row_count` rows, in order of their numbers.
        surfaces: One byte an event, index into `SURFACE_NAMES`.
        replaced_by: For each shadowed event the event that replaced it.
    """

    def __init__(
        self, root: Path, found: FoundLog, *, signal: AbortSignal, children: ChildrenOf
    ) -> None:
        self._stream = EventStream(root, found, signal=signal, children=children)
        self._path = found.path(root)
        self.header = self._stream.header
        self.revision = self._stream.revision
        self.format_status = format_status_of(found.revision.generation)
        self.inherited_event_count = 0
        self.event_count = 0
        self.row_count = 0
        self.times = array("q")
        self.surfaces = bytearray()
        self.replaced_by: dict[int, int] = {}

    def __enter__(self) -> ScannedLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def __iter__(self) -> Iterator[tuple[int, str, int, str, tuple[str, ...]]]:
        tools = ToolNames()
        times = array("q")
        add_time = times.append
        with_text = TEXT_PARTS
        count = 0
        for event in self._stream:
            time = event["time"]
            add_time(time)
            count += 1
            kind = event["type"]
            if kind in with_text:
                try:
                    text = event_text(event)
                except PayloadError as error:
                    raise SessionQueryError(
                        f"The session log {self._path} cannot be searched: {error}.",
                        code=PERSISTENCE_FAILED,
                    ) from error
                if text:
                    seq = event["seq"]
                    names = tools.of(event)
                    del event
                    yield seq, kind, time, text, names
        stream = self._stream
        stream.rules.check_surface()
        self.inherited_event_count = stream.rules.inherited_event_count
        self.event_count = count
        self.row_count = stream.row_count
        self.times = times[: stream.row_count]
        self.surfaces = stream.rules.classification(count)
        self.replaced_by = stream.rules.replaced_by


def scan_log(
    root: Path, found: FoundLog, *, signal: AbortSignal, children: ChildrenOf = no_children
) -> ScannedLog:
    """Open a log for one pass over its documents; see `ScannedLog`, and `load_log` for arguments.

    The same rules apply as in `load_log`, and further a payload whose text cannot be taken is
    ``PERSISTENCE_FAILED``.

    Raises:
        SessionQueryError: As `load_log`, here or during the iteration.
    """
    return ScannedLog(root, found, signal=signal, children=children)

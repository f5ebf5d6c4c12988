"""Reading one log: all its events, or a scan that keeps only what is searchable."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.discovery import FoundLog
from dsh_memory.sessionquery.disk.header import format_status_of
from dsh_memory.sessionquery.errors import PERSISTENCE_FAILED, SessionQueryError
from dsh_memory.sessionquery.log.reader import EventStream
from dsh_memory.sessionquery.log.searchable_text import TEXT_PARTS, PayloadError, event_text
from dsh_memory.sessionquery.log.tool_names import ToolNames
from dsh_memory.sessionquery.model.children import ChildrenOf, no_children
from dsh_memory.sessionquery.model.sessions import CURRENT, SHADOWED

assert (CURRENT, SHADOWED) == (1, 2)


class ScannedLog:
    """One pass over a log that yields its documents and keeps no payload.

    Iterate it once, inside ``with``; each item is ``(seq, type, time, text, tools)`` of an event
    with text (`sessionquery.log.tool_names`). Only when the iteration has ended without an error is
    the log valid: a consumer that stores documents must be able to undo it. Then these hold:

    Attributes:
        header: Known before the iteration.
        revision: Of the bytes that are read (taken from the open file, before reading).
        format_status: Known before the iteration.
        inherited_event_count: How many events stem from the parent.
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
    """Open a log for one pass over its documents; see `ScannedLog`.

    Args:
        root: The sessions directory.
        found: The log.
        signal: Polled once a batch of rows.
        children: Tells the listed subagents of the session; only asked for logs of an older
            generation, whose list of subagents is completed from the store.

    The format's rules apply, and further a payload whose text cannot be taken is
    ``PERSISTENCE_FAILED``.

    Raises:
        SessionQueryError: ``CORRUPT_SESSION`` for a log that breaks the format's rules,
            ``PERSISTENCE_FAILED`` for one that this program cannot interpret or read,
            ``INVALID_SURFACE``, ``ABORTED``; here or during the iteration.
    """
    return ScannedLog(root, found, signal=signal, children=children)

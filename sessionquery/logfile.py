"""Reading one log: its header alone, all its events, or a scan that keeps only what is searchable.

A log is read up to the size it had when it was opened. Nothing is locked: a live DSH may append
meanwhile, and what it has not finished writing does not count.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias

from sessionquery.abort import AbortSignal
from sessionquery.bodyrules import CURRENT, SHADOWED, BodyError, BodyRules
from sessionquery.closing import closing_rows
from sessionquery.discovery import FoundLog, LogRevision
from sessionquery.documents import TEXT_PARTS, PayloadError, event_text
from sessionquery.errors import ABORTED, CORRUPT_SESSION, PERSISTENCE_FAILED, SessionQueryError
from sessionquery.frames import FrameError, FrameReader, PlainReader, lines_of
from sessionquery.header import HeaderProblem, parse_header
from sessionquery.index.tools import ToolNames
from sessionquery.jsontext import JsonDepthError, JsonError, parse_json
from sessionquery.model import Event, SessionHeader, Surface
from sessionquery.paths import CURRENT_GENERATION, Encoding
from sessionquery.rows import KNOWN_TYPES, normalize_row

if TYPE_CHECKING:
    from sessionquery.generations.catalog import Child

SURFACE_NAMES: tuple[Surface, Surface, Surface] = ("log-only", "current", "shadowed")
"""Names of the codes in `ScannedLog.surfaces`."""
assert (CURRENT, SHADOWED) == (1, 2)

FormatStatus = Literal["current", "migration-required"]
ChildrenOf: TypeAlias = "Callable[[str], Iterable[Child]]"


def no_children(session_id: str) -> tuple[Child, ...]:
    """Tell that a session has no subagents in the store."""
    return ()


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


def format_status_of(generation: int) -> FormatStatus:
    return "current" if generation >= CURRENT_GENERATION else "migration-required"


def read_header(root: Path, found: FoundLog) -> SessionHeader | HeaderProblem:
    """Read the header line of a log and nothing else of it.

    Args:
        root: The sessions directory.
        found: The log.

    Raises:
        SessionQueryError: ``PERSISTENCE_FAILED`` if the file cannot be read.
    """
    try:
        with _open(found.path(root)) as handle:
            line = _header_line(handle, found.revision.size, found.encoding)
    except FrameError as error:
        return HeaderProblem("corrupt", str(error))
    except OSError as error:
        raise _unreadable(found.path(root), error) from error
    if isinstance(line, HeaderProblem):
        return line
    return parse_header(line, found.revision.generation)


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
            ``PERSISTENCE_FAILED`` for one that this program cannot interpret or read, ``ABORTED``.
    """
    with EventStream(root, found, signal=signal, children=children) as stream:
        events = list(stream)
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
    with text (`sessionquery.index.tools`). Only when the iteration has ended without an error is the log valid: a consumer that
    stores documents must be able to undo it. Then these hold:

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


class EventStream:
    """The events of a log in order, each checked against the earlier ones.

    Errors may come at any moment of the iteration: nothing of the log counts before its end.
    Memory is bounded by the largest frame, not by the log.

    Attributes:
        header: In generation-4 form.
        revision: Of the opened file.
        rules: The state after the events so far.
        row_count: Events on disk, known at the end.
    """

    def __init__(
        self,
        root: Path,
        found: FoundLog,
        *,
        signal: AbortSignal,
        children: ChildrenOf = no_children,
    ) -> None:
        self._path = found.path(root)
        self._signal = signal
        self._children = children
        self._generation = found.revision.generation
        self._closers = ExitStack()
        self.row_count = 0
        try:
            handle = self._closers.enter_context(_open(self._path))
            self.revision = _revision_of(handle, found.revision.generation)
            self._reader = _reader(handle, self.revision.size, found.encoding)
            line = (
                self._reader.header_frame()
                if isinstance(self._reader, FrameReader)
                else self._reader.header_line()
            )
            header = _checked_header(line, found)
        except FrameError as error:
            self.close()
            raise self._corrupt(str(error)) from error
        except OSError as error:
            self.close()
            raise _unreadable(self._path, error) from error
        if isinstance(header, HeaderProblem):
            self.close()
            code = PERSISTENCE_FAILED if header.kind in ("newer", "fatal") else CORRUPT_SESSION
            raise SessionQueryError(f"The session log {self._path}: {header.reason}.", code=code)
        self.header = header
        self.rules = BodyRules(is_seeded=header.is_seeded)
        self._header_line = line or b""

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._closers.close()

    def __iter__(self) -> Iterator[Event]:
        try:
            if self._generation < CURRENT_GENERATION:
                yield from self._migrated_events()
            else:
                yield from self._events()
        except FrameError as error:
            raise self._corrupt(str(error)) from error
        except BodyError as error:
            if self._generation < CURRENT_GENERATION:
                raise self._refused(str(error)) from error
            raise self._corrupt(str(error)) from error
        except JsonDepthError as error:
            raise SessionQueryError(
                f"The session log {self._path} cannot be read: a row is {error}.",
                code=PERSISTENCE_FAILED,
            ) from error
        except OSError as error:
            raise _unreadable(self._path, error) from error

    def _events(self) -> Iterator[Event]:
        rules = self.rules
        accept = rules.accept
        known = KNOWN_TYPES
        seq = 0
        last_time = 0
        broken_at: int | None = None
        failure: BodyError | None = None
        for batch in self._reader.batches():
            self._signal.raise_if_aborted()
            for line in lines_of(batch):
                try:
                    row = parse_json(line)
                except JsonDepthError:
                    raise
                except JsonError:
                    row = None
                if broken_at is None and not normalize_row(row, seq):
                    broken_at = seq
                if broken_at is not None:
                    self._behind_broken_row(row, broken_at)
                    continue
                kind = row["type"]
                if kind not in known and row.get("ignorable") is not True:
                    raise self._unknown_type(kind, seq)
                if failure is None:
                    try:
                        accept(row)
                    except BodyError as error:
                        failure = error
                    else:
                        last_time = row["time"]
                        yield row
                        del row
                seq += 1
        if failure is not None:
            raise failure
        rules.finish()
        self.row_count = seq
        yield from self._closing_events(seq, last_time)

    def _lines(self) -> Iterator[bytes | memoryview]:
        for batch in self._reader.batches():
            self._signal.raise_if_aborted()
            yield from lines_of(batch)

    def _migrated_events(self) -> Iterator[Event]:
        # Stores without older logs need not pay for loading these modules.
        from sessionquery.generations.migration import migrated_rows

        accept = self.rules.accept
        seq = last_time = 0
        failure: BodyError | None = None
        rows = migrated_rows(
            parse_json(self._header_line),
            self._lines(),
            children=lambda: self._children(self.header.id),
        )
        try:
            for row in rows:
                if failure is not None:
                    continue
                try:
                    accept(row)
                except BodyError as error:
                    # What the decoding of later rows finds wrong counts before it.
                    failure = error
                    continue
                last_time = row["time"]
                seq += 1
                yield row
        except SessionQueryError as error:
            if error.code == ABORTED:
                raise
            raise SessionQueryError(
                f"The session log {self._path}: {error.message}", code=error.code, hint=error.hint
            ) from error
        if failure is not None:
            raise failure
        self.rules.finish()
        self.row_count = seq
        yield from self._closing_events(seq, last_time)

    def _closing_events(self, seq: int, time: int) -> Iterator[Event]:
        for event in list(closing_rows(self.rules, seq, time)):
            self.rules.accept(event)
            yield event

    def _behind_broken_row(self, row: object, broken_at: int) -> None:
        if not isinstance(row, dict):
            return
        kind = row.get("type")
        if kind == "turn/end":
            raise BodyError(f"row {broken_at} is broken although a finished turn follows")
        if isinstance(kind, str) and kind not in KNOWN_TYPES and row.get("ignorable") is not True:
            raise self._unknown_type(kind, broken_at)

    def _unknown_type(self, kind: str, seq: int) -> SessionQueryError:
        return SessionQueryError(
            f"The session log {self._path} has an event of the unknown type {kind!r} (seq {seq}); "
            "it was probably written by a newer DSH.",
            code=PERSISTENCE_FAILED,
        )

    def _refused(self, reason: str) -> SessionQueryError:
        return SessionQueryError(
            f"The session log {self._path} of an older format cannot be migrated: {reason}.",
            code=PERSISTENCE_FAILED,
        )

    def _corrupt(self, reason: str) -> SessionQueryError:
        return SessionQueryError(
            f"The session log {self._path} is corrupt: {reason}.", code=CORRUPT_SESSION
        )


def _open(path: Path) -> BinaryIO:
    return path.open("rb")


def _reader(handle: BinaryIO, size: int, encoding: Encoding) -> FrameReader | PlainReader:
    return FrameReader(handle, size) if encoding == "zstd" else PlainReader(handle, size)


def _revision_of(handle: BinaryIO, generation: int) -> LogRevision:
    status = os.fstat(handle.fileno())
    return LogRevision(
        generation, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
    )


def _header_line(handle: BinaryIO, size: int, encoding: Encoding) -> bytes | HeaderProblem | None:
    reader = _reader(handle, size, encoding)
    if isinstance(reader, PlainReader):
        return reader.header_line()
    text = reader.header_frame()
    if text is not None and (text.count(b"\n") != 1 or not text.endswith(b"\n")):
        return HeaderProblem("corrupt", "the first frame is not exactly one header line")
    return text


def _checked_header(line: bytes | None, found: FoundLog) -> SessionHeader | HeaderProblem:
    if (
        found.encoding == "zstd"
        and line is not None
        and (line.count(b"\n") != 1 or not line.endswith(b"\n"))
    ):
        return HeaderProblem("corrupt", "the first frame is not exactly one header line")
    return parse_header(line, found.revision.generation)


def _unreadable(path: Path, error: OSError) -> SessionQueryError:
    return SessionQueryError(
        f"The session log {path} cannot be read: {error.strerror or error}.",
        code=PERSISTENCE_FAILED,
        retryable=isinstance(error, FileNotFoundError),
    )

"""The events of one log in order, decoded, checked and closed.

A log is read up to the size it had when it was opened. Nothing is locked: a live DSH may append
meanwhile, and what it has not finished writing does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.discovery import FoundLog
from dsh_memory.sessionquery.disk.frames import FrameError, lines_of
from dsh_memory.sessionquery.disk.header import HeaderProblem, parse_header
from dsh_memory.sessionquery.disk.header_reader import open_reader, revision_of, unreadable
from dsh_memory.sessionquery.disk.names import CURRENT_GENERATION
from dsh_memory.sessionquery.errors import (
    ABORTED,
    CORRUPT_SESSION,
    PERSISTENCE_FAILED,
    SessionQueryError,
)
from dsh_memory.sessionquery.js.json import JsonDepthError, JsonError, parse_json, parse_refused
from dsh_memory.sessionquery.log.interrupted_turn import closing_rows
from dsh_memory.sessionquery.model.children import ChildrenOf, no_children
from dsh_memory.sessionquery.model.event_types import KNOWN_TYPES
from dsh_memory.sessionquery.model.sessions import Event
from dsh_memory.sessionquery.rules.envelope import normalize_row
from dsh_memory.sessionquery.rules.messages import MessageIdentityError
from dsh_memory.sessionquery.rules.session import BodyError, SessionValidator

if TYPE_CHECKING:
    pass


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
            handle = self._closers.enter_context(self._path.open("rb"))
            self.revision = revision_of(handle, found.revision.generation)
            self._reader = open_reader(handle, self.revision.size, found)
            line = self._reader.header_line()
            header = parse_header(line, found.revision.generation)
        except FrameError as error:
            self.close()
            raise self._corrupt(str(error)) from error
        except OSError as error:
            self.close()
            raise unreadable(self._path, error) from error
        if isinstance(header, HeaderProblem):
            self.close()
            code = PERSISTENCE_FAILED if header.kind in ("newer", "fatal") else CORRUPT_SESSION
            raise SessionQueryError(f"The session log {self._path}: {header.reason}.", code=code)
        self.header = header
        self.rules = SessionValidator(
            session_id=header.id,
            is_seeded=header.is_seeded,
            is_migrated=self._generation < CURRENT_GENERATION,
        )
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
            if self._generation < CURRENT_GENERATION and not isinstance(
                error, MessageIdentityError
            ):
                raise self._refused(str(error)) from error
            raise self._corrupt(str(error)) from error
        except JsonDepthError as error:
            raise SessionQueryError(
                f"The session log {self._path} cannot be read: a row is {error}.",
                code=PERSISTENCE_FAILED,
            ) from error
        except OSError as error:
            raise unreadable(self._path, error) from error

    def _events(self) -> Iterator[Event]:
        rules = self.rules
        accept = rules.accept
        loads = orjson.loads
        JSONDecodeError = orjson.JSONDecodeError  # noqa: N806
        known = KNOWN_TYPES
        seq = 0
        last_time = 0
        broken = False
        failure: BodyError | None = None
        unknown: Event | None = None
        for batch in self._reader.batches():
            self._signal.raise_if_aborted()
            for line in lines_of(batch):
                try:
                    row = loads(line)
                except JSONDecodeError:
                    row = _parse_unusual(line)
                if broken or not normalize_row(row, seq):
                    # A finished turn was surely written as a whole; rows before it were not torn.
                    if not broken and not self._reader.torn:
                        raise BodyError(f"row {seq} is broken although its frame is complete")
                    broken = True
                    if row.__class__ is dict:
                        self._check_broken(row, seq)
                    continue
                seq += 1
                if failure is not None:
                    continue
                if row["type"] not in known and unknown is None and "ignorable" not in row:
                    unknown = row
                try:
                    accept(row)
                except BodyError as error:
                    # Broken rows that are still to come count before it.
                    failure = error
                    continue
                last_time = row["time"]
                yield row
                del row
        if failure is not None:
            raise failure
        rules.finish()
        if unknown is not None:
            raise self._unknown_type(unknown)
        self.row_count = seq
        yield from self._closing_events(seq, last_time)

    def _check_broken(self, row: dict[str, Any], seq: int) -> None:
        from dsh_memory.sessionquery.rules.undecodable import RETIRED_TYPES, check_decodable

        if row.get("type") == "turn/end":
            raise BodyError(f"row {seq} is broken although a finished turn follows")
        if row.get("type") in RETIRED_TYPES and "ignorable" not in row:
            raise self._unknown_type({**row, "seq": seq})
        try:
            check_decodable(row)
        except BodyError as error:
            raise BodyError(f"a row behind event {seq - 1} {error}") from error

    def _lines(self) -> Iterator[bytes | memoryview]:
        for batch in self._reader.batches():
            self._signal.raise_if_aborted()
            yield from lines_of(batch)

    def _migrated_events(self) -> Iterator[Event]:
        # Stores without older logs need not pay for loading these modules.
        from dsh_memory.sessionquery.generations.migration import migrated_rows

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
            self.rules.accept_closing(event)
            yield event

    def _unknown_type(self, event: Event) -> SessionQueryError:
        return SessionQueryError(
            f"The session log {self._path} has an event of the unknown type {event['type']!r} "
            f"(seq {event['seq']}); it was probably written by a newer DSH.",
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


def _parse_unusual(line: bytes | memoryview) -> Any:
    """Parse a row that `orjson` refuses; None if it is no JSON for JavaScript either."""
    try:
        return parse_refused(line)
    except JsonDepthError:
        raise
    except JsonError:
        return None

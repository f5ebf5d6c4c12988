"""Generation 1 to 2: stream chunks move into the message that they led to; numbers shift down.

Generation 1 logs every piece of a streamed answer as an event. Generation 2 keeps the pieces inside
the finished message (``data.stream``), or, if no message came of them, in one ``assistant/attempt``
event. It also writes down what used to be implied: the end of an interrupted turn, a goal that
changed, and where the rows copied from a parent session end (``session/end-seed``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dsh_memory.sessionquery.generations.admission import check_envelope, check_event
from dsh_memory.sessionquery.generations.context import LogContext
from dsh_memory.sessionquery.generations.packed import CHUNK_TYPES
from dsh_memory.sessionquery.generations.problems import CorruptLogError, MigrationRefusedError
from dsh_memory.sessionquery.generations.renumber import Numbering
from dsh_memory.sessionquery.generations.restart import RestartWatch
from dsh_memory.sessionquery.generations.stream import Attempt, ChunkRun, Insertion, chunk_run
from dsh_memory.sessionquery.generations.values import Row

_ENDS_ATTEMPT = frozenset({"turn/end", "step/end", "llm/retry", "llm/retry-started"})


def migrate(rows: Iterable[Row], log: LogContext) -> Iterator[Row]:
    """Yield the rows of a generation 1 log as generation 2.

    Raises:
        CorruptLogError: The log has fewer events than its header says were copied.
        MigrationRefusedError: A message cites an incomplete attempt, an event cites a chunk, the
            copied part ends inside an attempt, or a turn begins inside another.
    """
    step = _Step(log)
    ready = step.ready
    checked = log.generation != 1
    for row in rows:
        if row["type"] in CHUNK_TYPES:
            step.chunk(chunk_run(row))
        else:
            if not checked:
                check_envelope(row)
                check_event(row, 1)
            step.event(row)
        if ready:
            yield from ready
            ready.clear()
    step.end()
    yield from ready


class _Step:
    """The state between rows.

    Attributes:
        ready: Finished rows, for the caller to take; a list, because generators for single rows
            would cost more than the migration itself.
    """

    def __init__(self, log: LogContext) -> None:
        self.ready: list[Row] = []
        self._numbers = Numbering(replace_ends=("start", "end"))
        self._restart = RestartWatch()
        self._seed = log.seed_length
        self._awaits_marker = log.is_seeded
        self._attempt: Attempt | None = None
        self._count = 0
        self._time = log.created_at

    def chunk(self, run: ChunkRun) -> None:
        self._count += run.count
        self._time = run.time
        self._restart.pass_over()
        self._numbers.drop(run.first, run.count)
        attempt = self._attempt
        if attempt is not None and not attempt.takes(run):
            self._fail_attempt()
            attempt = None
        if attempt is None:
            attempt = self._attempt = Attempt(run.turn, run.step)
        elif attempt.held:
            self._release(attempt)
        attempt.add(run)

    def event(self, row: Row) -> None:
        self._count += 1
        self._time = row["time"]
        kind = row["type"]
        turn = self._restart.turn
        missing = self._restart.missing_end(row)
        if kind == "turn/start" and turn is not None and missing is None:
            raise MigrationRefusedError(f"turn/start at {row['seq']} stands in turn {turn}")
        if kind == "assistant/message":
            self._message(row)
            return
        if kind in _ENDS_ATTEMPT:
            self._fail_attempt()
        if missing is not None:
            self._hold_or_put(row, ("turn/end", missing))
        elif kind == "user/message" and (goal := _goal_change(row)) is not None:
            self._hold_or_put(_without_change(row), ("goal/change", goal))
        else:
            self._hold_or_put(row, None)

    def end(self) -> None:
        self._fail_attempt()
        if self._seed > self._count:
            raise CorruptLogError("the log is shorter than the part copied from its parent")
        if self._awaits_marker:
            self._mark(self._time)

    def _message(self, row: Row) -> None:
        attempt, data = self._attempt, row["data"]
        cited = row.get("sourceEventSeqs")
        own = attempt is not None and attempt.turn == data["turn"] and attempt.step == data["step"]
        stream: list[dict[str, Any]] = []
        first = row["seq"]
        if attempt is not None and own and cited != []:
            if cited != attempt.seqs:
                raise MigrationRefusedError(
                    f"assistant/message at {row['seq']} does not cite its whole attempt"
                )
            self._release(attempt)
            self._attempt = None
            stream, first = attempt.stream, attempt.seqs[0]
        elif attempt is not None:
            self._fail_attempt()
        elif cited:
            raise MigrationRefusedError(f"assistant/message at {row['seq']} cites no attempt")
        row = {**row, "data": {**data, "stream": stream}}
        row.pop("sourceEventSeqs", None)
        self._refuse_cut(first, row["seq"])
        self._put(row, None)

    def _hold_or_put(self, row: Row, before: Insertion | None) -> None:
        if self._attempt is not None:
            self._attempt.held.append((row, before))
        else:
            self._put(row, before)

    def _release(self, attempt: Attempt) -> None:
        held, attempt.held = attempt.held, []
        for row, before in held:
            self._put(row, before)

    def _fail_attempt(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        first, last = attempt.seqs[0], attempt.seqs[-1]
        self._refuse_cut(first, last)
        if self._awaits_marker and first >= self._seed:
            self._mark(attempt.time)
        data = {"turn": attempt.turn, "step": attempt.step, "stream": attempt.stream}
        self.ready.append(self._numbers.insert("assistant/attempt", attempt.time, data))
        self._release(attempt)

    def _put(self, row: Row, before: Insertion | None) -> None:
        if self._awaits_marker and row["seq"] >= self._seed:
            if row["seq"] == self._seed and row["type"] == "session/end-seed":
                self._awaits_marker = False
                row = {**row, "data": {**row["data"], "inherited": True}}
            else:
                self._mark(row["time"])
        if before is not None:
            kind, data = before
            self.ready.append(self._numbers.insert(kind, row["time"], data))
        self.ready.append(self._numbers.place(row))

    def _mark(self, time: int) -> None:
        self._awaits_marker = False
        self.ready.append(self._numbers.insert("session/end-seed", time, {"inherited": True}))

    def _refuse_cut(self, first: int, last: int) -> None:
        if self._awaits_marker and first < self._seed <= last:
            raise MigrationRefusedError("the part copied from the parent ends inside an attempt")


def _goal_change(row: Row) -> dict[str, Any] | None:
    source = row["data"]["source"]
    return source.get("change") if source["kind"] == "goal" else None


def _without_change(row: Row) -> Row:
    """The message that announced a goal's change, without it."""
    return {**row, "data": {**row["data"], "source": {"kind": "plugin", "plugin": "goal"}}}

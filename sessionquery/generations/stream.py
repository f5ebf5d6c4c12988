"""The attempts of a model to answer: stream chunks of one turn and step, packed as records.

Neighbouring delta chunks of the same kind, block index (and, for tool calls, id and name) form one
record ``{type, time0, index, dt, texts | args, id?, name?}``, where `dt` holds the differences of
their times in ms. Every other chunk is a record of its own: ``{type: "chunk", time, chunk}``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dsh_memory.sessionquery.generations.admission import check_envelope
from dsh_memory.sessionquery.generations.messages import known_chunk
from dsh_memory.sessionquery.generations.packed import PACKED_MEMBERS, is_packed
from dsh_memory.sessionquery.generations.problems import MigrationRefusedError
from dsh_memory.sessionquery.generations.shapes import count
from dsh_memory.sessionquery.generations.values import Row

_DELTA_TYPES = {
    "text-delta": ("text-chunks", "text"),
    "reasoning-delta": ("reasoning-chunks", "text"),
    "tool-call-delta": ("tool-call-chunks", "argumentsDelta"),
}
"""Delta chunk type: its record type and the key of its piece."""


Insertion: TypeAlias = tuple[str, dict[str, Any]]
"""Type and data of an event that is to be inserted before another."""


@dataclass(slots=True)
class ChunkRun:
    """One chunk or a packed run of chunks, as it comes from the log.

    Attributes:
        first: Number of the first chunk. `count`: how many numbers the run takes.
        time: Time of the last chunk (ms).
        record: The run as a stream record.
        finishes: Whether it ends the attempt.
    """

    turn: Any
    step: Any
    first: int
    count: int
    time: int
    record: dict[str, Any]
    finishes: bool = False


def chunk_run(row: Row) -> ChunkRun:
    """Read a packed row or an ``assistant/chunk`` event.

    Raises:
        MigrationRefusedError: It is malformed.
    """
    return _packed_run(row) if is_packed(row) else _single_run(row)


def _packed_run(row: Row) -> ChunkRun:
    kind, data = row["type"], row["data"]
    members = PACKED_MEMBERS[kind]
    record: dict[str, Any] = {
        "type": kind,
        "time0": row["time0"],
        "index": data["index"],
        "dt": list(data["dt"]),
    }
    for key in ("id", "name"):
        if key in data:
            record[key] = data[key]
    record[members] = list(data[members])
    time = row["time0"] + sum(data["dt"])
    return ChunkRun(data["turn"], data["step"], row["seq0"], len(data[members]), time, record)


def _single_run(row: Row) -> ChunkRun:
    check_envelope(row)
    data, time = row["data"], int(row["time"])
    chunk = data.get("chunk")
    if not count(data.get("turn")) or not count(data.get("step")) or not known_chunk(chunk):
        raise MigrationRefusedError(f"assistant/chunk at {row['seq']} is malformed")
    kind = chunk["type"]
    if kind in _DELTA_TYPES and chunk.get("id") != "" and chunk.get("name") != "":
        record = _delta_record(chunk, time)
    else:
        record = {"type": "chunk", "time": time, "chunk": chunk}
    return ChunkRun(data["turn"], data["step"], row["seq"], 1, time, record, kind == "finish")


def _delta_record(chunk: dict[str, Any], time: int) -> dict[str, Any]:
    kind, piece = _DELTA_TYPES[chunk["type"]]
    record: dict[str, Any] = {"type": kind, "time0": time, "index": chunk["index"], "dt": []}
    if kind == "tool-call-chunks":
        record.update({key: chunk[key] for key in ("id", "name") if key in chunk})
    record[PACKED_MEMBERS[kind]] = [chunk[piece]]
    return record


@dataclass(slots=True)
class Attempt:
    """The chunks of one attempt so far.

    Attributes:
        seqs: Numbers of its chunks in the source, ascending.
        time: Time of its last chunk (ms).
        stream: Its records.
        held: Other events that arrived since its last chunk, with what goes before them.
    """

    turn: Any
    step: Any
    seqs: list[int] = field(default_factory=list)
    time: int = 0
    stream: list[dict[str, Any]] = field(default_factory=list)
    held: list[tuple[Row, Insertion | None]] = field(default_factory=list)
    finished: bool = False

    def takes(self, run: ChunkRun) -> bool:
        """Whether `run` continues this attempt."""
        return not self.finished and run.turn == self.turn and run.step == self.step

    def add(self, run: ChunkRun) -> None:
        last = self.stream[-1] if self.stream else None
        if last is not None and _continues(last, run.record):
            _join(last, run.record, gap=run.record["time0"] - self.time)
        else:
            self.stream.append(run.record)
        self.seqs.extend(range(run.first, run.first + run.count))
        self.time = run.time
        self.finished = run.finishes


def _continues(last: dict[str, Any], record: dict[str, Any]) -> bool:
    return record["type"] in PACKED_MEMBERS and all(
        last.get(key) == record.get(key) for key in ("type", "index", "id", "name")
    )


def _join(last: dict[str, Any], record: dict[str, Any], *, gap: int) -> None:
    members = PACKED_MEMBERS[record["type"]]
    last["dt"].append(gap)
    last["dt"].extend(record["dt"])
    last[members].extend(record[members])

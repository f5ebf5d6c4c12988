"""From lines to rows: what of an old log still counts, and what proves it corrupt.

Two layers look at every line. The *line layer* parses JSON; after the first line that is no JSON
nothing later counts. The *row layer* checks that a row is well-formed and carries the next number;
after the first one that is not, nothing later counts either. A later ``turn/end`` shows that what
was lost had once been complete, and makes the log corrupt (FORMAT, "Lines").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dsh_memory.sessionquery.generations.packed import PACKED_MEMBERS, read_packing_row, row_length
from dsh_memory.sessionquery.generations.problems import CorruptLogError
from dsh_memory.sessionquery.generations.strict_rows import accept_3, inspect_3, read_strict_row
from dsh_memory.sessionquery.generations.values import Row
from dsh_memory.sessionquery.js.json import JsonDepthError, JsonError, parse_json


@dataclass(frozen=True, slots=True)
class Codec:
    """The row layer of one generation.

    Attributes:
        read: Returns the row in its unpacked form, or None if it is malformed.
        packs: Whether one row may stand for several chunk events.
        inspect: Raises for content that condemns the log even behind a broken row.
        accept: Whether a well-formed row with the right number may stand in the log.
    """

    read: Callable[[Any], Row | None]
    packs: bool = False
    inspect: Callable[[Any], None] | None = None
    accept: Callable[[Row], bool] | None = None

    def accepts(self, row: Row) -> bool:
        return self.accept is None or self.accept(row)


CODECS: Final = (
    Codec(read_packing_row, packs=True),
    Codec(read_packing_row, packs=True),
    Codec(read_strict_row),
    Codec(read_strict_row, inspect=inspect_3, accept=accept_3),
)
"""By generation 0 to 3."""


def decode(
    lines: Iterable[bytes | memoryview], generation: int, *, is_seeded: bool
) -> Iterator[Row]:
    """Yield the rows of a log of `generation` 0-3 that count; `lines` follow the header line.

    Raises:
        CorruptLogError: A ``turn/end`` stands behind a broken row, or a seeded log of generation
            2 or 3 does not say where its inherited part ends.
        MigrationRefusedError: A generation 3 row of a kind that generation 4 has no form for.
    """
    codec = CODECS[generation]
    read, inspect, packs = codec.read, codec.inspect, codec.packs
    count = 0
    lines_end = rows_end = False
    awaits_marker = is_seeded and generation >= 2
    for line in lines:
        try:
            value = parse_json(line)
        except JsonDepthError:
            raise
        except JsonError:
            lines_end = True
            continue
        if lines_end:
            if type(value) is dict and value.get("type") == "turn/end":
                raise CorruptLogError("a turn/end stands behind a line that is not JSON")
            continue
        if inspect is not None:
            inspect(value)
        row = read(value)
        if row is None:
            rows_end = True
            continue
        packed = packs and row["type"] in PACKED_MEMBERS
        seq = row["seq0"] if packed else row.get("seq")
        if rows_end or seq != count or seq is True or seq is False or not codec.accepts(row):
            rows_end = True
            if row["type"] == "turn/end":
                raise CorruptLogError("a turn/end stands at or behind a broken row")
            continue
        count += row_length(row) if packed else 1
        if awaits_marker and _is_marker(row):
            awaits_marker = False
        yield row
    if awaits_marker:
        raise CorruptLogError("a seeded log has no inherited end-seed marker")


def _is_marker(row: Row) -> bool:
    data = row["data"]
    return (
        row["type"] == "session/end-seed" and type(data) is dict and data.get("inherited") is True
    )

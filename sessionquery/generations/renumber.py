"""Numbers that shift: the map from old to new, and every place in a row that names a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsh_memory.sessionquery.generations.problems import MigrationRefusedError
from dsh_memory.sessionquery.generations.values import Row
from dsh_memory.sessionquery.js.text import is_count

GONE = -1
"""The new number of an event that has none."""


class Numbering:
    """Assigns new numbers in output order and translates references to earlier events."""

    def __init__(self, *, replace_ends: tuple[str, str]) -> None:
        """`replace_ends`: the keys of a replacement's first and last number in this generation."""
        self._ends = replace_ends
        # Old to new; None as long as every event kept its number.
        self._new: list[int] | None = None
        self._next = 0

    def insert(self, kind: str, time: int, data: dict[str, Any], **surface: Any) -> Row:
        """Make an event that has no counterpart in the source."""
        self._shift()
        row = {"type": kind, "seq": self._next, "time": time, "data": data, **surface}
        self._next += 1
        return row

    def drop(self, first: int, count: int) -> None:
        """Note that the source numbers from `first` on have no event of their own."""
        self._reserve(self._shift(), first + count)

    def place(self, row: Row) -> Row:
        """Give the source event `row` its new number and translate what it cites.

        Raises:
            MigrationRefusedError: It cites what is no earlier event or has no counterpart.
        """
        new = self._next
        moved = row if self._new is None and not _cites(row) else self._translated(row, new)
        self._next = new + 1
        if self._new is not None:
            # A row that was held back stands before numbers that are already known.
            self._reserve(self._new, row["seq"] + 1)
            self._new[row["seq"]] = new
        return moved

    def translate(self, old: Any) -> int:
        """Return the new number of the earlier source event `old`.

        Raises:
            MigrationRefusedError: It is no number of an earlier event, or has no counterpart.
        """
        if is_count(old):
            number = int(old)
            if self._new is None and number < self._next:
                return number
            if self._new is not None and number < len(self._new) and self._new[number] != GONE:
                return self._new[number]
        raise MigrationRefusedError(f"an event cites {old!r}, which has no counterpart")

    def _shift(self) -> list[int]:
        if self._new is None:
            self._new = list(range(self._next))
        return self._new

    def _reserve(self, numbers: list[int], length: int) -> None:
        missing = length - len(numbers)
        if missing == 1:
            numbers.append(GONE)
        elif missing > 1:
            numbers.extend([GONE] * missing)

    def _translated(self, row: Row, new: int) -> Row:
        moved = {**row, "seq": new}
        if "sourceEventSeqs" in row:
            moved["sourceEventSeqs"] = self._each(row["sourceEventSeqs"])
        op = row.get("surfaceOp", "append")
        if type(op) is dict:
            first, last = self._ends
            moved["surfaceOp"] = {
                **op,
                first: self.translate(op.get(first)),
                last: self.translate(op.get(last)),
            }
        change = _REFERENCES.get(row["type"])
        if change is not None and type(row["data"]) is dict:
            moved["data"] = change(self, row["data"])
        return moved

    def _each(self, seqs: Any) -> list[int]:
        if type(seqs) is not list:
            raise MigrationRefusedError("an event cites no list of numbers")
        return [self.translate(seq) for seq in seqs]

    def _range(self, span: Any) -> dict[str, Any]:
        if type(span) is not dict:
            raise MigrationRefusedError("a compaction has no proper range")
        return {
            **span,
            "start": self.translate(span.get("start")),
            "end": self.translate(span.get("end")),
        }

    def _command_done(self, data: dict[str, Any]) -> dict[str, Any]:
        if "sourceEventSeq" not in data:
            return data
        return {**data, "sourceEventSeq": self.translate(data["sourceEventSeq"])}

    def _shadowed(self, data: dict[str, Any]) -> dict[str, Any]:
        return {
            **data,
            "shadowedRange": self._range(data.get("shadowedRange")),
            "shadowedSeqs": self._each(data.get("shadowedSeqs")),
        }

    def _title(self, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "messageSeqs": self._each(data.get("messageSeqs"))}


_REFERENCES: dict[str, Callable[[Numbering, dict[str, Any]], dict[str, Any]]] = {
    "command/done": Numbering._command_done,
    "compaction/summary": Numbering._shadowed,
    "compaction/prune": Numbering._shadowed,
    "session/title": Numbering._title,
    "session/title-llm-request": Numbering._title,
}
"""Event types whose data cites other events."""


def _cites(row: Row) -> bool:
    return (
        "sourceEventSeqs" in row or type(row.get("surfaceOp")) is dict or row["type"] in _REFERENCES
    )

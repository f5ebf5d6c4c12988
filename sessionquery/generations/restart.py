"""A session that was restarted in the middle of a turn and simply began the next one.

Old writers did not close the interrupted turn. The migrations recognize exactly one such form - the
next input was put into the queue right before - and insert the missing ``turn/end``. Any other
turn in an open turn stays for the step or the final check to refuse.
"""

from __future__ import annotations

from typing import Any

from dsh_memory.sessionquery.generations.values import Row
from dsh_memory.sessionquery.js.text import is_count


class RestartWatch:
    """Follows turns and steps; says where a ``turn/end`` is missing.

    Attributes:
        turn: The open turn, None between turns.
    """

    def __init__(self) -> None:
        self.turn: Any = None
        self._step_open = False
        self._spliced = False

    def missing_end(self, row: Row) -> dict[str, Any] | None:
        """Return the data of the ``turn/end`` that belongs before `row`, or None."""
        kind, missing = row["type"], None
        if kind == "turn/start":
            turn = _of(row, "turn")
            missing = self._end_before(turn)
            self.turn, self._step_open = turn, False
        elif kind == "turn/end":
            self.turn, self._step_open = None, False
        elif kind == "step/start":
            self._step_open = True
        elif kind == "step/end":
            self._step_open = False
        self._spliced = (
            kind == "agent/inbox/spliced"
            and _of(row, "target") == "next-turn"
            and bool(_of(row, "inserted"))
        )
        return missing

    def pass_over(self) -> None:
        """Note a row of another kind (stream chunks)."""
        self._spliced = False

    def _end_before(self, next_turn: Any) -> dict[str, Any] | None:
        turn = self.turn
        if not is_count(turn) or self._step_open or not self._spliced or next_turn != turn + 1:
            return None
        return {"turn": turn, "reason": {"kind": "interrupted"}}


def _of(row: Row, key: str) -> Any:
    data = row["data"]
    return data.get(key) if type(data) is dict else None

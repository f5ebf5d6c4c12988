"""The current surface of a session: which events are the model's history, in which order."""

from __future__ import annotations

from dsh_memory.sessionquery.js.text import is_count
from dsh_memory.sessionquery.model.sessions import CURRENT, SHADOWED, Event
from dsh_memory.sessionquery.rules.messages import BodyError, require


class SurfaceFold:
    """An ordered list of event numbers that surface events append to or replace runs of.

    Attributes:
        order: Numbers of the current surface events in list order, not always ascending.
        replaced_by: For each shadowed event the event that replaced it.
        head: Number of the system message at the head, which only another one may replace.
    """

    def __init__(self) -> None:
        self.order: list[int] = []
        self.replaced_by: dict[int, int] = {}
        self.head: int | None = None

    def add(self, event: Event) -> None:
        """Fold a surface event.

        Raises:
            BodyError: Its ``surfaceOp`` does not fit the current surface or its sources.
        """
        operation = event["surfaceOp"]
        seq = event["seq"]
        if operation == "append":
            sources = event.get("sourceEventSeqs")
            if sources is not None and not sources:
                raise BodyError("has an empty source list")
            self.order.append(seq)
            return
        if operation.__class__ is not dict:
            raise BodyError("has no usable surfaceOp")
        for key in ("startSeq", "endSeq"):
            end_point = operation[key]
            require(is_count(end_point) and end_point < seq, f"has an unusable {key}")
        require(len(operation) == 3 and operation["op"] == "replace", "has an unusable surfaceOp")
        surface = self.order
        try:
            start = surface.index(operation["startSeq"])
            end = surface.index(operation["endSeq"], start)
        except ValueError:
            raise BodyError("replaces what is not on the surface") from None
        shadowed = surface[start : end + 1]
        require(
            set(event["sourceEventSeqs"]).issuperset(shadowed),
            "does not cite every event that it replaces",
        )
        if self.head in shadowed:
            require(
                event["type"] == "system/message" and len(shadowed) == 1,
                "replaces the system message at the head",
            )
            self.head = seq
        for old in shadowed:
            self.replaced_by[old] = seq
        surface[start : end + 1] = [seq]

    def classification(self, count: int) -> bytearray:
        """Return one byte an event (`LOG_ONLY`, `CURRENT`, `SHADOWED`) for events 0..count-1."""
        out = bytearray(count)
        for seq in self.order:
            out[seq] = CURRENT
        for seq in self.replaced_by:
            out[seq] = SHADOWED
        return out

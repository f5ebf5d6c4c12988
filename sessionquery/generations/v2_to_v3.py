"""Generation 2 to 3: the system prompt becomes a message of its own; numbers shift up.

Generation 2 keeps the prompt inside ``request/header``. Generation 3 has ``system/message`` rows:
an empty one at the first step, and one that replaces its predecessor wherever the prompt changed.
The ends of a replacement are now called `startSeq` and `endSeq`, code mode is called ptc, and the
envelope and payload of every row must be exactly right.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from dsh_memory.sessionquery.generations.admission import check_event
from dsh_memory.sessionquery.generations.context import LogContext
from dsh_memory.sessionquery.generations.messages import stream
from dsh_memory.sessionquery.generations.problems import MigrationRefusedError
from dsh_memory.sessionquery.generations.renumber import Numbering
from dsh_memory.sessionquery.generations.shapes import Shape, count, one_of
from dsh_memory.sessionquery.generations.values import Row
from dsh_memory.sessionquery.model.event_types import SURFACE_TYPES

_STREAMED = frozenset({"assistant/message", "assistant/attempt"})
_RENAMED = {
    "tool/code-dispatch": "tool/ptc-dispatch",
    "tool/code-dispatch-start": "tool/ptc-dispatch-start",
}
_REPLACE = Shape(op=one_of("replace"), start=count, end=count)
_PROMPT_SOURCE = {"kind": "plugin", "plugin": "@deepseek-ai/dsh-system-prompt"}


def migrate(rows: Iterable[Row], log: LogContext) -> Iterator[Row]:
    """Yield the rows of a generation 2 log as generation 3.

    Raises:
        MigrationRefusedError: A row is not exactly of generation 2, a surface event stands before
            the first step, or the prompt changes between steps.
    """
    step = _Step(log)
    for row in rows:
        kind = row["type"]
        if log.generation == 2:
            check_event(row, 2)
        elif kind in _STREAMED and not stream(row["data"]["stream"]):
            # The other payloads were held to the rules when the log entered, chunks were not.
            raise MigrationRefusedError(f"{kind} at {row['seq']} streams an unknown block")
        if kind in SURFACE_TYPES:
            yield step.surface(row)
            continue
        if "surfaceOp" in row or "sourceEventSeqs" in row:
            raise MigrationRefusedError(f"{kind} at {row['seq']} is outside the surface")
        if kind == "step/start":
            yield from step.step_start(row)
        elif kind == "request/header":
            yield from step.request_header(row)
        else:
            yield step.log_only(row)


class _Step:
    def __init__(self, log: LogContext) -> None:
        self._session_id = log.session_id
        self._seeded = log.is_seeded
        self._numbers = Numbering(replace_ends=("start", "end"))
        self._prompt = ""
        self._head: int | None = None
        self._place: dict[str, Any] | None = None

    def surface(self, row: Row) -> Row:
        _check_surface_keys(row)
        if self._head is None:
            raise MigrationRefusedError(f"{row['type']} at {row['seq']} precedes the first step")
        row = self._numbers.place(row)
        op = row["surfaceOp"]
        if op == "append":
            return row
        return {
            **row,
            "surfaceOp": {"op": "replace", "startSeq": op["start"], "endSeq": op["end"]},
        }

    def step_start(self, row: Row) -> Iterator[Row]:
        self._place = {"turn": row["data"]["turn"], "step": row["data"]["step"]}
        yield self._numbers.place(row)
        if self._head is None:
            yield self._system_row(row, "", surfaceOp="append")

    def request_header(self, row: Row) -> Iterator[Row]:
        header = row["data"]["header"]
        prompt = header.get("system", "")
        if prompt != self._prompt:
            if self._place is None:
                raise MigrationRefusedError(f"the prompt changes at {row['seq']} between steps")
            head = self._head
            op = {"op": "replace", "startSeq": head, "endSeq": head}
            yield self._system_row(row, prompt, surfaceOp=op, sourceEventSeqs=[head])
            self._prompt = prompt
        yield self._numbers.place({**row, "data": {**row["data"], "header": _kept(header)}})

    def log_only(self, row: Row) -> Row:
        kind = row["type"]
        if kind in ("step/end", "turn/end"):
            self._place = None
        elif kind in _RENAMED:
            row = {**row, "type": _RENAMED[kind]}
        elif kind == "agent-preset/selected" and row["data"]["agentPreset"] == "code":
            row = {**row, "data": {"agentPreset": "ptc"}}
        elif kind == "session/end-seed" and "inherited" in row["data"] and not self._seeded:
            raise MigrationRefusedError("a session without copied rows has an inherited marker")
        return self._numbers.place(row)

    def _system_row(self, anchor: Row, prompt: str, **surface: Any) -> Row:
        message = {
            "id": self._message_id(anchor),
            "role": "system",
            "source": dict(_PROMPT_SOURCE),
            "content": [{"type": "text", "text": prompt}] if prompt else [],
        }
        data = {**(self._place or {}), "message": message}
        row = self._numbers.insert("system/message", anchor["time"], data, **surface)
        self._head = row["seq"]
        return row

    def _message_id(self, anchor: Row) -> str:
        parts = ["session-format-v2-to-v3", self._session_id, anchor["seq"], anchor["type"]]
        return f"v2-to-v3-system-{hashlib.sha256(_json_bytes(parts)).hexdigest()}"


def _check_surface_keys(row: Row) -> None:
    op = row.get("surfaceOp")
    if op != "append" and not _REPLACE(op):
        raise MigrationRefusedError(f"{row['type']} at {row['seq']} has no proper surfaceOp")
    if "sourceEventSeqs" in row and (
        row["type"] == "assistant/message" or not row["sourceEventSeqs"]
    ):
        raise MigrationRefusedError(f"{row['type']} at {row['seq']} has no proper sourceEventSeqs")


def _kept(header: dict[str, Any]) -> dict[str, Any]:
    """The header without the prompt and without empty tools and defaults."""
    return {
        key: value
        for key, value in header.items()
        if key != "system"
        and not (key == "tools" and value == [])
        and not (key == "adapterDefaults" and value == {})
    }


def _json_bytes(value: Any) -> bytes:
    """Compact JSON as JavaScript writes it: only lone surrogates are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")

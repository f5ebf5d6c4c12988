"""Generation 0 to 1: old names and shapes become the ones that later generations know.

No event is added, removed or renumbered. Early writers of generation 0 left out ids and wrapped
messages differently; here they get stable ids made from session and number, so that a second
reading gives the same. Types or data that generation 1 does not know are refused, because nothing
later could say what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dsh_memory.sessionquery.generations.admission import check_envelope, check_event
from dsh_memory.sessionquery.generations.context import LogContext
from dsh_memory.sessionquery.generations.packed import CHUNK_TYPES
from dsh_memory.sessionquery.generations.problems import MigrationRefusedError
from dsh_memory.sessionquery.generations.shapes import Shape, anything, count, name, positive
from dsh_memory.sessionquery.generations.values import Row
from dsh_memory.sessionquery.js.text import is_count

_RENAMED = {
    "compact/start": "compaction/start",
    "compact/summary": "compaction/summary",
    "compact/end": "compaction/end",
    "compact/prune": "compaction/prune",
}
_REMOVED_TYPES = frozenset({"mode/set", "request/header-delta"})

_TRIGGERED_TURN = Shape(turn=anything, trigger=anything)
_STEERING_MESSAGE = Shape(turn=count, message=anything)
_STEERING_PARTS = Shape(turn=count, content=anything, source=anything)
_RETRY_CHAIN = ("turn", "step", "provider", "policyKey")
_WRAPPED_RESULT = ("callId", "content", "isError")


def migrate(rows: Iterable[Row], log: LogContext) -> Iterator[Row]:
    """Yield the rows of a generation 0 log as generation 1.

    Raises:
        MigrationRefusedError: For a type or data that generation 1 does not know.
    """
    upgrade = _Upgrade(log.session_id)
    for row in rows:
        if row["type"] not in CHUNK_TYPES:
            row = upgrade.apply(row)
            check_event(row, 0)
        yield row


class _Upgrade:
    """The changes of generation 0, with what must be remembered from row to row."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._retry_ids: dict[tuple[Any, ...], Any] = {}
        self._compaction_id: Any = None
        self._message_ids: dict[int, Any] = {}
        self._by_type: dict[str, Callable[[Row, dict[str, Any]], Row]] = {
            "turn/start": self._turn_start,
            "turn/end": self._turn_end,
            "request/header": self._request_header,
            "steering/message": self._steering_message,
            "llm/retry": self._retry,
            "compaction/start": self._compaction_start,
            "compaction/summary": self._in_compaction,
            "compaction/end": self._compaction_end,
            "user/message": self._user_message,
            "assistant/message": self._assistant_message,
            "tool/result": self._tool_result,
            "session/end-seed": self._end_seed,
        }

    def apply(self, row: Row) -> Row:
        check_envelope(row)
        kind = row["type"]
        if kind in _REMOVED_TYPES:
            raise MigrationRefusedError(f"{kind} at {row['seq']} has no later form")
        if kind in _RENAMED:
            kind = _RENAMED[kind]
            row = {**row, "type": kind}
        change = self._by_type.get(kind)
        if change is None:
            return row
        row = change(row, row["data"])
        self._remember_message(row)
        return row

    def _legacy_id(self, kind: str, row: Row) -> str:
        return f"legacy-{kind}:{self._session_id}:{row['seq']}"

    def _remember_message(self, row: Row) -> None:
        data = row["data"]
        message = data if row["type"] == "user/message" else data.get("message")
        if type(message) is dict and "id" in message:
            self._message_ids[row["seq"]] = message["id"]

    def _turn_start(self, row: Row, data: dict[str, Any]) -> Row:
        if not _TRIGGERED_TURN(data):
            return row
        trigger = data["trigger"]
        if not positive(data["turn"]) or type(trigger) is not dict or not name(trigger.get("kind")):
            raise MigrationRefusedError(f"turn/start at {row['seq']} has a malformed trigger")
        return {**row, "data": {"turn": data["turn"]}}

    def _turn_end(self, row: Row, data: dict[str, Any]) -> Row:
        reason = data.get("reason")
        if not positive(data.get("turn")) or type(reason) is not dict:
            raise MigrationRefusedError(f"turn/end at {row['seq']} is malformed")
        return {**row, "data": {**data, "reason": _end_reason(reason, row["seq"])}}

    def _request_header(self, row: Row, data: dict[str, Any]) -> Row:
        if data.get("reason") == "fallback":
            raise MigrationRefusedError(f"request/header at {row['seq']} has the reason fallback")
        header = data.get("header")
        if type(header) is not dict or "messagePrefix" not in header:
            return row
        if type(header["messagePrefix"]) is not list:
            raise MigrationRefusedError(f"request/header at {row['seq']} has a bad messagePrefix")
        kept = {key: value for key, value in header.items() if key != "messagePrefix"}
        return {**row, "data": {**data, "header": kept}}

    def _steering_message(self, row: Row, data: dict[str, Any]) -> Row:
        if _STEERING_MESSAGE(data):
            message = data["message"]
        elif _STEERING_PARTS(data):
            message = {
                "content": data["content"],
                "source": data["source"],
                "role": "user",
                "id": self._legacy_id("message", row),
            }
        else:
            raise MigrationRefusedError(f"steering/message at {row['seq']} is malformed")
        if type(message) is not dict:
            raise MigrationRefusedError(f"steering/message at {row['seq']} is malformed")
        return {**row, "type": "user/message", "data": message}

    def _retry(self, row: Row, data: dict[str, Any]) -> Row:
        chain = tuple(_hashable(data.get(key)) for key in _RETRY_CHAIN)
        if "retryId" in data:
            self._retry_ids[chain] = data["retryId"]
            return row
        retry_id = self._retry_ids.setdefault(chain, self._legacy_id("retry", row))
        return {**row, "data": {"retryId": retry_id, **data}}

    def _compaction_start(self, row: Row, data: dict[str, Any]) -> Row:
        if "compactionId" not in data:
            data = {"compactionId": self._legacy_id("compaction", row), **data}
        self._compaction_id = data["compactionId"]
        return {**row, "data": data}

    def _in_compaction(self, row: Row, data: dict[str, Any]) -> Row:
        if "compactionId" in data or self._compaction_id is None:
            return row
        return {**row, "data": {"compactionId": self._compaction_id, **data}}

    def _compaction_end(self, row: Row, data: dict[str, Any]) -> Row:
        row = self._in_compaction(row, data)
        self._compaction_id = None
        return row

    def _end_seed(self, row: Row, data: dict[str, Any]) -> Row:
        self._compaction_id = None
        return row

    def _user_message(self, row: Row, data: dict[str, Any]) -> Row:
        source = data.get("source")
        if type(source) is dict and source.get("kind") == "plugin":
            data = self._with_checkpoint_id(data, source)
        if "content" in data and "source" in data and not data.keys() & {"id", "role", "message"}:
            data = {**data, "role": "user", "id": self._legacy_id("message", row)}
        return row if data is row["data"] else {**row, "data": data}

    def _with_checkpoint_id(self, data: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
        if source.get("plugin") != "compact" or "compactionId" in source:
            return data
        if self._compaction_id is None:
            return data
        return {**data, "source": {**source, "compactionId": self._compaction_id}}

    def _assistant_message(self, row: Row, data: dict[str, Any]) -> Row:
        if "message" in data or not ("content" in data and "provenance" in data):
            return row
        provenance = data["provenance"]
        if type(provenance) is not dict:
            raise MigrationRefusedError(f"assistant/message at {row['seq']} is malformed")
        kept = {k: v for k, v in data.items() if k not in ("content", "provenance")}
        message = {
            "role": "assistant",
            "content": data["content"],
            "source": {**provenance, "kind": "model"},
            "id": self._legacy_id("message", row),
        }
        return {**row, "data": {**kept, "message": message}}

    def _tool_result(self, row: Row, data: dict[str, Any]) -> Row:
        if "message" in data or not all(key in data for key in _WRAPPED_RESULT):
            return row
        kept = {k: v for k, v in data.items() if k not in _WRAPPED_RESULT}
        block = {
            "type": "tool-result",
            "toolCallId": data["callId"],
            "content": data["content"],
            "isError": data["isError"],
        }
        message = {
            "source": {"kind": "tool", "callId": data["callId"]},
            "content": [block],
            "role": "user",
            "id": self._result_id(row),
        }
        return {**row, "data": {**kept, "message": message}}

    def _result_id(self, row: Row) -> Any:
        op = row.get("surfaceOp")
        if type(op) is not dict:
            return self._legacy_id("message", row)
        start = op.get("start")
        if not is_count(start) or start not in self._message_ids:
            raise MigrationRefusedError(f"tool/result at {row['seq']} replaces no known message")
        return self._message_ids[int(start)]


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, (dict, list)) else value


def _end_reason(reason: dict[str, Any], seq: int) -> dict[str, Any]:
    kind = reason.get("kind")
    if kind == "aborted" and "reason" not in reason:
        return {"kind": "aborted", "reason": {"kind": "legacy"}}
    if kind == "disposed":
        return {"kind": "aborted", "reason": {"kind": "disposed"}}
    if kind == "error" and "error" not in reason:
        return {"kind": "error", "error": _end_error(reason, seq)}
    return reason


def _end_error(reason: dict[str, Any], seq: int) -> Any:
    if not is_count(reason.get("step")):
        raise MigrationRefusedError(f"turn/end at {seq} names no step of its error")
    if "failure" in reason:
        return reason["failure"]
    return {"message": reason.get("message"), "code": reason.get("code") or "UNKNOWN"}

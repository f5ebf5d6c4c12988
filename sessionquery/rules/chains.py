"""Rules over chains of log-only events: retries, dispatched tool calls, compactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dsh_memory.sessionquery.js.text import is_count
from dsh_memory.sessionquery.rules.messages import BodyError, check_blocks, is_name, require


def same_number(value: Any, number: int) -> bool:
    """JavaScript's ``===`` between a JSON value and an integer."""
    return value == number and value.__class__ is not bool


@dataclass(slots=True)
class _RetryChain:
    id: str
    count: int = 0


@dataclass(slots=True)
class RetryRules:
    """Retries of one policy count 1, 2, 3... under one id; each is started at most once."""

    provider: Any = None
    _chains: dict[tuple[Any, ...], _RetryChain] = field(default_factory=dict)
    _owners: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    _scheduled: dict[tuple[str, int], tuple[Any, Any]] = field(default_factory=dict)
    _started: set[tuple[str, int]] = field(default_factory=set)

    def scheduled(self, data: dict[str, Any]) -> None:
        """Take in an ``llm/retry`` that stands in its turn and step."""
        retry_id, retry = data.get("retryId"), data.get("retry")
        if not isinstance(retry_id, str) or not retry_id:
            raise BodyError("has no retry id")
        provider = data.get("provider")
        require(
            is_name(provider) and provider == self.provider,
            "names another provider than the request header",
        )
        key = (data["turn"], data["step"], provider, data.get("policyKey"))
        chain = self._chains.setdefault(key, _RetryChain(retry_id))
        require(
            same_number(retry, chain.count + 1), f"has the retry {retry!r} instead of the next one"
        )
        require(
            chain.id == retry_id and self._owners.setdefault(retry_id, key) == key,
            "has the retry id of another chain",
        )
        chain.count += 1
        self._scheduled[retry_id, chain.count] = (data["turn"], data["step"])

    def started(self, data: dict[str, Any]) -> None:
        """Take in an ``llm/retry-started``."""
        retry_id, retry = data.get("retryId"), data.get("retry")
        if not isinstance(retry_id, str) or not is_count(retry):
            raise BodyError("names no retry")
        key = (retry_id, int(retry))
        require(key in self._scheduled, "starts a retry that was not scheduled")
        require(
            self._scheduled[key] == (data.get("turn"), data.get("step")),
            "starts a retry of another turn or step",
        )
        require(key not in self._started, "starts a retry again")
        self._started.add(key)


@dataclass(slots=True)
class _Dispatch:
    root: str
    parent: str
    name: Any
    arguments: Any
    done: bool = False


@dataclass(slots=True)
class DispatchRules:
    """Tool calls that a tool made: each is started once, ended once, below one root call."""

    _calls: dict[str, _Dispatch] = field(default_factory=dict)

    def _ids(self, data: dict[str, Any]) -> tuple[str, str, str]:
        root, parent, sub = (data.get(key) for key in ("rootCallId", "parentCallId", "subCallId"))
        if not (isinstance(root, str) and isinstance(parent, str) and isinstance(sub, str)):
            raise BodyError("lacks a call id")
        require(bool(root and parent and sub), "has an empty call id")
        return root, parent, sub

    def started(self, data: dict[str, Any]) -> None:
        root, parent, sub = self._ids(data)
        above = self._calls.get(parent)
        require(
            parent == root or (above is not None and above.root == root),
            f"has a parent call {parent!r} outside of its root call",
        )
        require(sub not in self._calls, f"repeats the call {sub!r}")
        self._calls[sub] = _Dispatch(root, parent, data.get("name"), data.get("arguments"))

    def ended(self, data: dict[str, Any]) -> None:
        root, parent, sub = self._ids(data)
        call = self._calls.get(sub)
        if call is None or call.done:
            raise BodyError(f"ends the call {sub!r}, which is not open")
        require(
            (call.root, call.parent, call.name, call.arguments)
            == (root, parent, data.get("name"), data.get("arguments")),
            f"differs from the start of the call {sub!r}",
        )
        check_blocks(data.get("content"))
        call.done = True


@dataclass(slots=True)
class CompactionRules:
    """At most one compaction is open; it ends with one summary or with an error."""

    open_id: str | None = None
    _command: Any = None
    _turn: int | None = None
    _summarized: bool = False

    @property
    def is_open(self) -> bool:
        return self.open_id is not None

    def start(self, data: dict[str, Any], open_turn: int) -> None:
        require(self.open_id is None, "overlaps another compaction")
        identity = data.get("compactionId")
        if not isinstance(identity, str) or not identity:
            raise BodyError("has no compaction id")
        require(
            same_number(data.get("turn"), open_turn)
            if open_turn
            else "turn" in data and data["turn"] is None,
            "names another turn than the open one",
        )
        self.open_id, self._command = identity, data.get("sourceCommandId")
        self._turn, self._summarized = open_turn or None, False

    def belongs(self, data: dict[str, Any]) -> None:
        """Check that an event belongs to the open compaction."""
        require(
            self.open_id is not None
            and data.get("compactionId") == self.open_id
            and data.get("sourceCommandId") == self._command,
            "does not belong to an open compaction",
        )

    def summary(self, data: dict[str, Any], surface: list[int], head: int | None) -> None:
        self.belongs(data)
        require(not self._summarized, "is a second summary")
        check_shadowed(data, surface, head)
        check_blocks(data.get("summary"))
        check_blocks(data.get("rawOutput"))
        self._summarized = True

    def end(self, data: dict[str, Any]) -> None:
        self.belongs(data)
        turn = data.get("turn", False)
        require(
            turn is None if self._turn is None else same_number(turn, self._turn),
            "ends the compaction in another turn",
        )
        require(self._summarized or "error" in data, "ends a compaction without a summary")
        self.forget()

    def forget(self) -> None:
        """Leave an open compaction behind, as a resumed session does."""
        self.open_id = None


def check_shadowed(data: dict[str, Any], surface: list[int], head: int | None) -> None:
    """Check that ``shadowedSeqs`` is exactly a run of the surface without the system head."""
    span, seqs = data.get("shadowedRange"), data.get("shadowedSeqs")
    if not isinstance(span, dict) or not isinstance(seqs, list) or not seqs:
        raise BodyError("does not say what it shadows")
    require(all(is_count(seq) for seq in seqs), "shadows what is no event number")
    require(
        (span.get("start"), span.get("end")) == (seqs[0], seqs[-1]),
        "has a range that differs from what it shadows",
    )
    start = surface.index(seqs[0]) if seqs[0] in surface else -1
    require(
        start >= 0 and surface[start : start + len(seqs)] == seqs,
        "shadows what is not a run of the surface",
    )
    require(head is None or head not in seqs, "shadows the system message at the head")

"""Random generation-4 stores that exercise the rules of the format, from a seed."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard
from awkward_text import text

T0 = 1_790_000_000_000
Row = dict[str, Any]

NAMES = ("s", "S", "session", "tie-", "a.b", "x_y", "~", "é", "ß", "a b", "a/b", "数", "..")
CWDS = ("/w/a", "/w/a", "/w/b c", "/w/项目", "/", "/w/~x:y", None)
TOOLS = ("bash", "read", "grep", "mcp__memory__recall_memory")
SOURCES = (
    "user",
    "user",
    "user",
    "runtime-context",
    "working-directory",
    "subagent-settled",
    "odd",
)
ENDS = (
    {"kind": "completed"},
    {"kind": "completed"},
    {"kind": "aborted", "reason": {"kind": "user"}},
    {"kind": "max-tokens"},
    {"kind": "error", "error": {"message": "upstream database failed", "code": "SERVER"}},
)


@dataclass
class Log:
    """One session under construction."""

    rng: random.Random
    header: Row
    rows: list[Row] = field(default_factory=list)
    surface: list[int] = field(default_factory=list)
    humans: list[int] = field(default_factory=list)
    time: int = 0
    turn: int = 0
    open_turn: bool = False

    def add(self, kind: str, data: Row, **envelope: Any) -> int:
        seq = len(self.rows)
        self.time += self.rng.choice((0, 0, 1, 7, 1500))
        self.rows.append({"type": kind, "seq": seq, "time": self.time, "data": data, **envelope})
        if envelope.get("surfaceOp") == "append":
            self.surface.append(seq)
        return seq

    def new_id(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def grow(self, turns: int) -> None:
        for _ in range(turns):
            if self.rng.random() < 0.25:
                self.between_turns()
            self.one_turn()
            if self.rng.random() < 0.2 and len(self.surface) > 3:
                self.compact()

    def between_turns(self) -> None:
        pick = self.rng.randrange(5)
        if pick == 0 and self.rows:
            self.add("session-log-deepseek/delivery-accepted", self.delivery())
        elif pick == 1 and self.humans:
            cited = sorted(self.rng.sample(self.humans, min(len(self.humans), 2)))
            title = {"title": text(self.rng, 4), "messageSeqs": cited}
            self.add("session/title", {**title, "source": {"kind": "fallback"}})
        elif pick == 2:
            title = {"title": text(self.rng, 3), "messageSeqs": [], "source": {"kind": "user"}}
            self.add("session/title", title)
        elif pick == 3:
            kind = self.rng.choice(("some/thing-unknown", "plan/mode", "todo/write"))
            known = {"todos": [{"content": "database", "status": "pending"}]}
            self.add(kind, known if kind == "todo/write" else {"text": "newt"}, ignorable=True)
        else:
            self.add("session/end-seed", {})

    def delivery(self) -> Row:
        seq = len(self.rows) - 1
        return {"sessionId": self.header["id"], "sessionFormatVersion": 4, "throughSeq": seq}

    def one_turn(self) -> None:
        self.turn += 1
        self.add("turn/start", {"turn": self.turn})
        for step in range(1, self.rng.choice((1, 1, 2, 3)) + 1):
            where = {"turn": self.turn, "step": step}
            self.add("step/start", where)
            if step == 1:
                self.opening(where)
            self.assistant(where)
            if self.rng.random() < 0.2:
                self.shorten(where)
            self.add("step/end", where)
        self.add("turn/end", {"turn": self.turn, "reason": self.rng.choice(ENDS)})

    def opening(self, where: Row) -> None:
        if not self.surface:
            message = {"role": "system", "content": [block("system database")]}
            message |= {"source": {"kind": "system-prompt"}, "id": self.new_id()}
            self.add("system/message", {**where, "message": message}, surfaceOp="append")
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            kind = self.rng.choice(SOURCES)
            content = [block(text(self.rng, self.rng.choice((1, 3, 12, 90))))]
            if self.rng.random() < 0.1:
                content.append({"type": "strange", "text": "database"})
            data = {"content": content, "source": {"kind": kind}, "role": "user"}
            seq = self.add("user/message", {**data, "id": self.new_id()}, surfaceOp="append")
            if kind == "user":
                self.humans.append(seq)

    def assistant(self, where: Row) -> None:
        rng = self.rng
        content: list[Row] = []
        if rng.random() < 0.3:
            content.append({"type": "reasoning", "text": text(rng, 5)})
        if rng.random() < 0.8:
            content.append(block(text(rng, rng.choice((2, 8, 40, 300)))))
        calls = [
            {
                "type": "tool-call",
                "id": f"call-{len(self.rows)}-{number}",
                "name": rng.choice(TOOLS),
                "arguments": json.dumps({"q": text(rng, 3)}, ensure_ascii=False),
            }
            for number in range(rng.choice((0, 0, 1, 2)))
        ]
        source = {"kind": "model", "provider": "p", "model": "m"}
        message = {"role": "assistant", "content": content + calls, "source": source}
        data = {**where, "message": {**message, "id": self.new_id()}, "usage": {}, "stream": []}
        self.add("assistant/message", data, surfaceOp="append")
        for call in calls:
            self.call(where, call)
        if rng.random() < 0.15:
            todos = [{"content": text(rng, 4), "status": rng.choice(("pending", "completed"))}]
            self.add("todo/write", {"todos": todos})

    def call(self, where: Row, call: Row) -> None:
        named = {"callId": call["id"], "name": call["name"], "arguments": call["arguments"]}
        at = self.add("tool/call", {**where, **named})
        failed = self.rng.random() < 0.2
        message = {
            "role": "tool",
            "source": {"kind": "tool", "callId": call["id"]},
            "toolCallId": call["id"],
            "content": [block(text(self.rng, self.rng.choice((1, 20, 120))))],
            "isError": failed,
            "id": self.new_id(),
        }
        data: Row = {**where, "message": message}
        if failed:
            data["error"] = {"name": "ToolError", "code": "TOOL_FAILED"}
        self.add("tool/result", data, sourceEventSeqs=[at], surfaceOp="append")

    def compact(self) -> None:
        first = self.rng.randrange(1, len(self.surface) - 1)
        shadowed = self.surface[first:]
        ids: Row = {"compactionId": self.new_id(), "turn": None}
        start = self.add("compaction/start", ids)
        summary = [block(text(self.rng, 30))]
        details = {"shadowedRange": {"start": shadowed[0], "end": shadowed[-1]}}
        details |= {
            "shadowedSeqs": shadowed,
            "shadowedTokenCount": 9,
            "provider": "p",
            "model": "m",
        }
        at = self.add(
            "compaction/summary",
            {"compactionId": ids["compactionId"], "summary": summary, "rawOutput": summary}
            | {"llmStreamCall": True, "maxTokens": 9, "usage": {}}
            | details,
        )
        source = {"kind": "compact-checkpoint", "compactionId": ids["compactionId"]}
        seq = self.add(
            "user/message",
            {"content": summary, "source": source, "role": "user", "id": self.new_id()},
            sourceEventSeqs=pack(sorted([start, at, *shadowed])),
            surfaceOp={"op": "replace", "startSeq": shadowed[0], "endSeq": shadowed[-1]},
        )
        self.surface[first:] = [seq]
        self.humans = [human for human in self.humans if human not in shadowed]
        self.add("compaction/end", ids)

    def shorten(self, where: Row) -> None:
        """Replace a tool's result of this step by a shorter one."""
        results = [
            seq
            for seq in self.surface
            if self.rows[seq]["type"] == "tool/result"
            and self.rows[seq]["data"].items() >= where.items()
        ]
        if not results:
            return
        old = self.rng.choice(results)
        before = self.rows[old]["data"]
        message = {**before["message"], "id": self.new_id(), "content": [block("pruned newt")]}
        data = {**before, "message": message}
        cited = self.rows[old].get("sourceEventSeqs", [])
        seq = self.add(
            "tool/result",
            data,
            sourceEventSeqs=sorted({old, *cited} if self.rng.random() < 0.5 else {old}),
            surfaceOp={"op": "replace", "startSeq": old, "endSeq": old},
        )
        self.surface[self.surface.index(old)] = seq

    def interrupt(self) -> None:
        """Leave the last turn open, as a killed process does."""
        self.turn += 1
        where = {"turn": self.turn, "step": 1}
        self.add("turn/start", {"turn": self.turn})
        if self.rng.random() < 0.2:
            return
        self.add("step/start", where)
        self.opening(where)
        if self.rng.random() < 0.7:
            self.assistant(where)
            cut = [row["type"] for row in self.rows[-4:]]
            while cut and cut[-1] in ("tool/result", "todo/write") and self.rng.random() < 0.7:
                row = self.rows.pop()
                cut.pop()
                if row["seq"] in self.surface:
                    self.surface.remove(row["seq"])


def block(value: str) -> Row:
    return {"type": "text", "text": value}


def pack(seqs: list[int]) -> list[int | list[int]]:
    packed: list[int | list[int]] = []
    run: list[int] = []
    for seq in [*seqs, -1]:
        if run and seq != run[-1] + 1:
            packed.extend([[run[0], run[-1]]] if len(run) > 2 else run)
            run = []
        run.append(seq)
    return packed


def build(home: Path, seed: int) -> None:
    """Write the store of `seed` to ``home/sessions``; zstd for odd seeds, else plain."""
    rng = random.Random(seed)
    zstd = bool(seed % 2)
    logs: list[Log] = []
    for number in range(rng.randint(3, 12)):
        logs.append(session(rng, number, logs))
    damaged = rng.randrange(len(logs)) if rng.random() < 0.3 else None
    for number, log in enumerate(logs):
        _write(home / "sessions", log, zstd=zstd, torn=number == damaged)
    note = {"compression": "zstd" if zstd else "none"}
    (home / "home.json").write_text(json.dumps(note), "utf-8")


def session(rng: random.Random, number: int, logs: list[Log]) -> Log:
    created = T0 + rng.choice((0, 1000, 1000, 5000, number * 1000))
    name = rng.choice(NAMES) + f"{number}"
    header: Row = {"type": "session", "version": 4, "id": name, "createdAt": created}
    cwd = rng.choice(CWDS)
    parent = rng.choice(logs) if logs and rng.random() < 0.4 else None
    if parent is not None:
        cwd = parent.header.get("cwd")
        header["parentSession"] = parent.header["id"]
    elif rng.random() < 0.08:
        header["parentSession"] = "gone"
    if cwd is not None:
        header["cwd"] = cwd
    if rng.random() < 0.1:
        header["agentPreset"] = "ptc"
    fork = parent is not None and rng.random() < 0.5
    subagent = parent is not None and rng.random() < 0.5
    header |= {"isSeeded": fork, "delegationDepth": 1 if subagent else 0}
    if subagent:
        header["origin"] = "subagent"
    log = Log(rng, header, time=created)
    if fork and parent is not None:
        _inherit(log, parent)
    log.grow(rng.choice((0, 1, 1, 2, 4)))
    if rng.random() < 0.25:
        log.interrupt()
    return log


def _inherit(log: Log, parent: Log) -> None:
    ends = [row["seq"] for row in parent.rows if row["type"] == "turn/end"]
    cut = log.rng.choice(ends) + 1 if ends else 0
    if any(row["type"].startswith("compaction/") for row in parent.rows[cut:]) or not ends:
        cut = 0
    log.rows = [dict(row) for row in parent.rows[:cut]]
    folded: list[int] = []
    for row in log.rows:
        operation = row.get("surfaceOp")
        if operation == "append":
            folded.append(row["seq"])
        elif operation:
            first, last = (folded.index(operation[key]) for key in ("startSeq", "endSeq"))
            folded[first : last + 1] = [row["seq"]]
    log.surface = folded
    log.turn = sum(row["type"] == "turn/start" for row in log.rows)
    log.humans = [
        row["seq"]
        for row in log.rows
        if row["type"] == "user/message" and row["data"]["source"]["kind"] == "user"
    ]
    log.time = max(log.time, log.rows[-1]["time"] if log.rows else 0)
    log.add("session/end-seed", {"inherited": True})


def _write(root: Path, log: Log, *, zstd: bool, torn: bool) -> None:
    place = folder(root, log.header)
    place.mkdir(parents=True, exist_ok=True)
    (place / "session.lock").touch()
    lines = [line(row) for row in (log.header, *log.rows)]
    if not zstd:
        content = b"".join(lines)
    else:
        compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
        frames = [lines[0]]
        rest = lines[1:]
        while rest:
            size = log.rng.randint(1, 9)
            frames.append(b"".join(rest[:size]))
            rest = rest[size:]
        content = b"".join(map(compressor.compress, frames))
    if torn and len(content) > len(lines[0]) + 400:
        content = content[: -log.rng.randint(1, 200)]
    name = "session.v4.jsonl.zstd" if zstd else "session.v4.jsonl"
    (place / name).write_bytes(content)


def folder(root: Path, header: Row) -> Path:
    """Return the directory of a session."""
    name = str(header["id"])
    if name in (".", ".."):
        return root / _project(header.get("cwd")) / name.replace(".", "~002E")
    return root / _project(header.get("cwd")) / _escape(name)


def line(row: Row) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _escape(value: str) -> str:
    units = value.encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(
        chr(code) if code < 128 and (chr(code).isalnum() or chr(code) in "._-") else f"~{code:04X}"
        for code in codes
    )


def _project(cwd: str | None) -> str:
    if cwd is None:
        return "_no-cwd"
    key = ""
    for character in cwd:
        if character in "/\\:":
            key += "" if key.endswith("-") and key[-1:] == "-" else "-"
        else:
            key += _escape(character)
    return "--" + (key.lstrip("-") or "root") + "--"

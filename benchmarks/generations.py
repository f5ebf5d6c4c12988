#!/usr/bin/env python3
"""How much more it costs to index logs of older formats than of the current one.

    python benchmarks/generations.py [--sessions 30] [--turns 40] [--rounds 3]

Writes the same conversations as plain stores of format 0, 3 and 4 and indexes each into memory.
Two costs are told. *Per event*: of what the log numbers as events; in format 0 these include the
pieces of streamed answers. *Per event shown*: of the current form, which all formats have equally
many of. CPU time, best of the rounds, formats in turn. Exits with 1 if an event of an older format
costs more than twice as much as one of the current format.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsh_memory.sessionquery.engine import SessionQueryEngine
from dsh_memory.sessionquery.model.options import EngineOptions

LIMIT = 2.0
FORMATS = (0, 3, 4)
PIECE = 12
WORDS = (
    *("session", "index", "query", "event", "search", "store", "cache", "read", "write", "open"),
    *("close", "update", "remove", "table", "column", "server", "client", "request", "response"),
    *("message", "token", "frame", "string", "number", "object", "array", "key", "module"),
)
Row = dict[str, Any]


class Conversation:
    """One session's rows in one format; the same seed tells the same story in each."""

    def __init__(self, seed: int, generation: int) -> None:
        self._random = random.Random(seed)
        self._generation = generation
        self._rows: list[Row] = []
        self._next = 0

    def rows(self, turns: int) -> list[Row]:
        for turn in range(1, turns + 1):
            self._turn(turn)
        return self._rows

    @property
    def events(self) -> int:
        """How many events the rows stand for."""
        return self._next

    def _text(self, words: int) -> str:
        return " ".join(self._random.choice(WORDS) for _ in range(words))

    def _add(self, kind: str, data: Row, **envelope: Any) -> int:
        seq = self._next
        self._rows.append({"type": kind, "seq": seq, "time": seq, "data": data, **envelope})
        self._next += 1
        return seq

    def _turn(self, turn: int) -> None:
        self._add("turn/start", {"turn": turn})
        for step in (1, 2):
            place = {"turn": turn, "step": step}
            self._add("step/start", place)
            if turn == step == 1 and self._generation:
                self._system(place)
            if step == 1:
                self._ask(turn)
            call = f"call-{turn}" if step == 1 else None
            self._answer(place, self._text(60), call)
            if call is not None:
                self._tool(place, call)
            self._add("step/end", place)
        self._add("turn/end", {"turn": turn, "reason": {"kind": "completed"}})

    def _system(self, place: Row) -> None:
        kind: Row = (
            {"kind": "system-prompt"}
            if self._generation == 4
            else {"kind": "plugin", "plugin": "@deepseek-ai/dsh-system-prompt"}
        )
        message = {"id": "system", "role": "system", "source": kind, "content": []}
        self._add("system/message", {**place, "message": message}, surfaceOp="append")

    def _ask(self, turn: int) -> None:
        message = {
            "content": [{"type": "text", "text": self._text(30)}],
            "source": {"kind": "user"},
            "role": "user",
            "id": f"user-{turn}",
        }
        self._add("user/message", message, surfaceOp="append")
        if turn == 1:
            config = {"provider": "p", "model": "m"}
            self._add("request/header", {"header": {"config": config}, "reason": "initial"})

    def _answer(self, place: Row, text: str, call: str | None) -> None:
        content: list[Row] = [{"type": "text", "text": text}]
        if call is not None:
            content.append({"type": "tool-call", "id": call, "name": "bash", "arguments": "{}"})
        message = {
            "role": "assistant",
            "content": content,
            "source": {"kind": "model", "provider": "p", "model": "m"},
            "id": f"answer-{self._next}",
        }
        records = list(_stream(content))
        if self._generation:
            data = {**place, "message": message, "stream": records}
            self._add("assistant/message", data, surfaceOp="append")
            return
        first = self._next
        for record in records:
            self._chunks(place, record)
        self._add(
            "assistant/message",
            {**place, "message": message},
            sourceEventSeqs=[[first, self._next - 1]],
            surfaceOp="append",
        )

    def _chunks(self, place: Row, record: Row) -> None:
        if record["type"] == "chunk":
            self._add("assistant/chunk", {**place, "chunk": record["chunk"]})
            return
        kept = {key: value for key, value in record.items() if key not in ("type", "time0")}
        packed = {"type": record["type"], "seq0": self._next, "time0": self._next}
        self._rows.append({**packed, "data": {**place, **kept}})
        self._next += len(record["texts"])

    def _tool(self, place: Row, call: str) -> None:
        named = {"callId": call, "name": "bash", "arguments": "{}"}
        called = self._add("tool/call", {**place, **named})
        content = [{"type": "text", "text": self._text(150)}]
        source = {"kind": "tool", "callId": call}
        result: Row = {"toolCallId": call, "content": content, "isError": False}
        if self._generation == 4:
            message = {"role": "tool", "source": source, "id": f"result-{called}", **result}
        else:
            block = {"type": "tool-result", **result}
            message = {
                "role": "user",
                "source": source,
                "id": f"result-{called}",
                "content": [block],
            }
        self._add(
            "tool/result",
            {**place, "message": message},
            sourceEventSeqs=[called],
            surfaceOp="append",
        )


def _stream(content: list[Row]) -> Iterator[Row]:
    """The records of a streamed answer: its text in pieces, and what frames it."""
    text = content[0]["text"]
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    chunks: list[Row] = [{"type": "block-start", "index": 0, "blockType": "text"}]
    yield {"type": "chunk", "time": 0, "chunk": chunks[0]}
    gaps = [1] * (len(pieces) - 1)
    yield {"type": "text-chunks", "time0": 0, "index": 0, "dt": gaps, "texts": pieces}
    for index, block in enumerate(content):
        end = {"type": "block-end", "index": index, "block": block}
        yield {"type": "chunk", "time": 0, "chunk": end}
    usage = {"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 1}}
    yield {"type": "chunk", "time": 0, "chunk": usage}
    finish = {"type": "finish", "reason": {"kind": "stop"}}
    yield {"type": "chunk", "time": 0, "chunk": finish}


def write_store(home: Path, generation: int, sessions: int, turns: int) -> tuple[int, int]:
    """Write a store; returns its bytes and the events that its logs number."""
    size = events = 0
    for number in range(sessions):
        header: Row = {
            "type": "session",
            "version": generation,
            "id": f"s{number}",
            "createdAt": number,
            "cwd": "/w",
            "delegationDepth": 0,
        }
        if generation:
            header["isSeeded"] = False
        folder = home / "sessions" / "--w--" / f"s{number}"
        folder.mkdir(parents=True)
        name = f"session.v{generation}.jsonl" if generation else "session.jsonl"
        conversation = Conversation(number, generation)
        rows = [header, *conversation.rows(turns)]
        events += conversation.events
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        (folder / name).write_text(text, "utf-8")
        size += len(text)
    return size, events


async def index_seconds(home: Path) -> float:
    """CPU seconds of the first search, which builds the index."""
    async with SessionQueryEngine(EngineOptions(home=str(home), index_path=":memory:")) as engine:
        started = time.process_time()
        await engine.search_sessions("zebra")
        return time.process_time() - started


async def count_events(home: Path, sessions: int) -> int:
    async with SessionQueryEngine(EngineOptions(home=str(home), index_path=":memory:")) as engine:
        counts = [len(await engine.list_events(f"s{number}")) for number in range(sessions)]
    return sum(counts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        homes = {generation: Path(folder) / f"v{generation}" for generation in FORMATS}
        written = {
            generation: write_store(home, generation, options.sessions, options.turns)
            for generation, home in homes.items()
        }
        shown = {
            generation: asyncio.run(count_events(home, options.sessions))
            for generation, home in homes.items()
        }
        best = dict.fromkeys(FORMATS, float("inf"))
        for _ in range(options.rounds):
            for generation, home in homes.items():
                best[generation] = min(best[generation], asyncio.run(index_seconds(home)))
    cost = {generation: best[generation] / written[generation][1] * 1e6 for generation in FORMATS}
    for generation in FORMATS:
        size, events = written[generation]
        print(
            f"format {generation}: {size / 1e6:.1f} MB, {best[generation]:.2f} s;"
            f" {events} events, {cost[generation]:.1f} us each, ratio"
            f" {cost[generation] / cost[4]:.2f};"
            f" {shown[generation]} shown, ratio {best[generation] / best[4]:.2f}"
        )
    return int(max(cost.values()) > LIMIT * cost[4])


if __name__ == "__main__":
    sys.exit(main())

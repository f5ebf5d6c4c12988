#!/usr/bin/env python3
"""Write the sample DSH home: a dozen invented sessions about an invented project.

    python examples/build_sample_home.py [OUT]        (default: examples/sample-home)

The result is deterministic and is committed, so that the demonstration needs no generator. The
sessions are generation-4 logs in zstd frames, as the runtime's ``sdk`` profile writes them:
main sessions, forks, a subagent session, a compaction, an interrupted turn, and Chinese text.
"""

from __future__ import annotations

import json
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any

import zstandard

TIDEPOOL = "/home/mira/code/tidepool"
SITE = "/home/mira/code/tidepool-site"
NOTES = "/home/mira/notes"
DAY = 86_400_000
START = 1_788_250_000_000
NAMESPACE = uuid.UUID("5a3f0b52-6c0e-4a53-9a51-0d8f3c0f7a11")
Row = dict[str, Any]


class SessionWriter:
    """Builds one log row by row; `turn` adds a whole turn."""

    def __init__(
        self, session_id: str, day: float, cwd: str | None, *, depth: int = 0, **header: Any
    ) -> None:
        self.id = session_id
        self.cwd = cwd
        self.time = START + int(day * DAY)
        self.header: Row = {
            "type": "session",
            "version": 4,
            "id": session_id,
            "createdAt": self.time,
            **({"cwd": cwd} if cwd else {}),
            "isSeeded": False,
            **header,
            "delegationDepth": depth,
        }
        self.rows: list[Row] = []
        self.surface: list[int] = []
        self.turns = 0
        self.titled = False

    def fork(self, session_id: str, day: float) -> SessionWriter:
        """A main fork: copies of the parent's rows, then the inherited marker."""
        child = SessionWriter(session_id, day, self.cwd, parentSession=self.id, isSeeded=True)
        child.rows = [dict(row) for row in self.rows]
        child.surface = list(self.surface)
        child.turns = self.turns
        child.titled = self.titled
        child.add("session/end-seed", {"inherited": True})
        return child

    def new_id(self) -> str:
        return str(uuid.uuid5(NAMESPACE, f"{self.id}/{len(self.rows)}"))

    def add(self, kind: str, data: Row, **envelope: Any) -> int:
        seq = len(self.rows)
        self.time += 900 + 37 * (seq % 11)
        self.rows.append({"type": kind, "seq": seq, "time": self.time, "data": data, **envelope})
        if envelope.get("surfaceOp") == "append":
            self.surface.append(seq)
        return seq

    def user(self, text: str, source: str = "user") -> int:
        message = {"content": [text_block(text)], "source": {"kind": source}, "role": "user"}
        return self.add("user/message", {**message, "id": self.new_id()}, surfaceOp="append")

    def assistant(self, step: int, blocks: list[Row]) -> None:
        self.add(
            "assistant/message",
            {
                "turn": self.turns,
                "step": step,
                "message": {
                    "role": "assistant",
                    "content": blocks,
                    "source": {"kind": "model", "provider": "example", "model": "example-model"},
                    "id": self.new_id(),
                },
                "usage": {"inputTokens": 900, "outputTokens": 60, "totalTokens": 960},
                "stream": [],
            },
            surfaceOp="append",
        )

    def open_turn(self, prompt: str) -> None:
        self.turns += 1
        self.add("turn/start", {"turn": self.turns})
        self.add("step/start", {"turn": self.turns, "step": 1})
        if not self.surface:
            self.add(
                "system/message",
                {
                    "turn": self.turns,
                    "step": 1,
                    "message": {
                        "role": "system",
                        "content": [text_block("You are a coding agent.")],
                        "source": {"kind": "system-prompt"},
                        "id": self.new_id(),
                    },
                },
                surfaceOp="append",
            )
        seq = self.user(prompt)
        if not self.titled:
            title = prompt if len(prompt) <= 60 else prompt[:59] + "…"
            fallback = {"title": title, "messageSeqs": [seq], "source": {"kind": "fallback"}}
            self.add("session/title", fallback)
            self.titled = True

    def tool(
        self, step: int, name: str, arguments: Row, output: str, *, failed: bool = False
    ) -> None:
        call = f"call_{len(self.rows)}"
        packed = json.dumps(arguments, ensure_ascii=False)
        self.assistant(step, [{"type": "tool-call", "id": call, "name": name, "arguments": packed}])
        where = {"turn": self.turns, "step": step}
        at = self.add("tool/call", {**where, "callId": call, "name": name, "arguments": packed})
        message = {
            "role": "tool",
            "source": {"kind": "tool", "callId": call},
            "toolCallId": call,
            "content": [text_block(output)],
            "isError": failed,
            "id": self.new_id(),
        }
        data = {**where, "message": message}
        if failed:
            data["error"] = {"name": "ToolError", "code": "TOOL_FAILED"}
        self.add("tool/result", data, sourceEventSeqs=[at], surfaceOp="append")

    def turn(self, prompt: str, answer: str, *tools: tuple[str, Row, str]) -> SessionWriter:
        self.open_turn(prompt)
        step = 1
        for name, arguments, output in tools:
            self.tool(step, name, arguments, output)
            self.add("step/end", {"turn": self.turns, "step": step})
            step += 1
            self.add("step/start", {"turn": self.turns, "step": step})
        self.assistant(step, [text_block(answer)])
        self.add("step/end", {"turn": self.turns, "step": step})
        self.add("turn/end", {"turn": self.turns, "reason": {"kind": "completed"}})
        return self

    def compact(self, summary: str) -> SessionWriter:
        """Replace everything after the system message by a checkpoint."""
        shadowed = self.surface[1:]
        ids = {"compactionId": self.new_id(), "turn": None}
        start = self.add("compaction/start", ids)
        block = [text_block(summary)]
        at = self.add(
            "compaction/summary",
            {
                "compactionId": ids["compactionId"],
                "summary": block,
                "rawOutput": block,
                "llmStreamCall": True,
                "shadowedRange": {"start": shadowed[0], "end": shadowed[-1]},
                "shadowedSeqs": shadowed,
                "shadowedTokenCount": 1800,
                "provider": "example",
                "model": "example-model",
                "maxTokens": 65536,
                "usage": {"inputTokens": 1900, "outputTokens": 80, "totalTokens": 1980},
            },
        )
        seq = self.add(
            "user/message",
            {
                "content": [text_block("Checkpoint of the earlier conversation."), *block],
                "source": {"kind": "compact-checkpoint", "compactionId": ids["compactionId"]},
                "role": "user",
                "id": self.new_id(),
            },
            sourceEventSeqs=pack([start, at, *shadowed]),
            surfaceOp={"op": "replace", "startSeq": shadowed[0], "endSeq": shadowed[-1]},
        )
        self.surface[1:] = [seq]
        self.add("compaction/end", ids)
        return self

    def write(self, root: Path) -> None:
        folder = root / project_directory(self.cwd) / self.id
        folder.mkdir(parents=True)
        compressor = zstandard.ZstdCompressor(level=9, write_checksum=True)
        with (folder / "session.v4.jsonl.zstd").open("wb") as log:
            for batch in (
                [self.header],
                *(self.rows[i : i + 8] for i in range(0, len(self.rows), 8)),
            ):
                log.write(compressor.compress("".join(map(line, batch)).encode()))
        (folder / "session.lock").touch()


def text_block(text: str) -> Row:
    return {"type": "text", "text": text}


def line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


def pack(seqs: list[int]) -> list[int | list[int]]:
    """Three or more neighbouring numbers become ``[first, last]``."""
    packed: list[int | list[int]] = []
    run: list[int] = []
    for seq in [*seqs, -1]:
        if run and seq != run[-1] + 1:
            packed.extend([[run[0], run[-1]]] if len(run) > 2 else run)
            run = []
        run.append(seq)
    return packed


def project_directory(cwd: str | None) -> str:
    return "_no-cwd" if cwd is None else "--" + cwd.strip("/").replace("/", "-") + "--"


def sessions() -> list[SessionWriter]:
    """The dozen sessions. "database" has clearly relevant and clearly irrelevant matches."""
    found: list[SessionWriter] = []

    kickoff = SessionWriter("tp-0001-ingest-kickoff", 0, TIDEPOOL)
    kickoff.turn(
        "We need to store readings from 400 tide gauges, one row every ten seconds each. Which database should the ingest service use?",
        "Roughly 3.5 million rows a day. SQLite would work for one gauge, but forty concurrent writers will fight for its lock. PostgreSQL with the TimescaleDB extension handles that load and keeps plain SQL. I would rule out InfluxDB because the team knows SQL and needs joins with the station table.",
    ).turn(
        "Fine, but let me think about the running costs first.",
        "Understood. I will leave the storage question open until you have looked at the costs.",
    )
    found.append(kickoff)

    decision = SessionWriter("tp-0002-storage-decision", 2, TIDEPOOL)
    decision.turn(
        "Decision for Tidepool: we go with PostgreSQL 16 plus TimescaleDB as the ingest database. Please record it.",
        "Recorded in docs/adr/0003-storage.md: the ingest database is PostgreSQL 16 with TimescaleDB, because forty gauges write at the same time and reports must join readings with stations. SQLite was rejected for its single writer, InfluxDB for the missing joins.",
        ("write", {"file_path": f"{TIDEPOOL}/docs/adr/0003-storage.md"}, "wrote 31 lines"),
    ).turn(
        "Also write down who runs it.",
        "Added an operations section: the harbour office runs the server, nightly dumps go to the second site.",
    )
    found.append(decision)

    what_if = decision.fork("tp-0003-what-if-duckdb", 3)
    what_if.turn(
        "Just for the record, what would DuckDB have given us?",
        "Fast analytics on Parquet files, but no concurrent writers at all, so it cannot replace the ingest database. It stays an option for the yearly report.",
    )
    found.append(what_if)

    pool = SessionWriter("tp-0004-connection-pool", 5, TIDEPOOL)
    pool.open_turn("The ingest workers run out of connections every evening. Find out why.")
    pool.tool(
        1,
        "bash",
        {"command": "rg -n pool_size src/"},
        "src/ingest/settings.py:14: pool_size = 5\nsrc/ingest/worker.py:88: engine = create_engine(url, pool_size=settings.pool_size)",
    )
    pool.add("step/end", {"turn": 1, "step": 1})
    pool.add("step/start", {"turn": 1, "step": 2})
    pool.tool(
        2,
        "bash",
        {"command": "psql -c 'show max_connections'"},
        "psql: command not found",
        failed=True,
    )
    pool.add("step/end", {"turn": 1, "step": 2})
    pool.add("step/start", {"turn": 1, "step": 3})
    pool.assistant(
        3,
        [
            text_block(
                "Each of the 40 workers opens its own pool of 5, which is 200 connections against a limit of 100. I moved the workers behind PgBouncer and set pool_size to 1. The database itself was never the bottleneck."
            )
        ],
    )
    pool.add("step/end", {"turn": 1, "step": 3})
    pool.add("turn/end", {"turn": 1, "reason": {"kind": "completed"}})
    found.append(pool)

    long_talk = SessionWriter("tp-0005-migration-day", 8, TIDEPOOL)
    long_talk.turn(
        "Today we move the old readings over. Prepare the migration.",
        "The migration copies 90 million rows from the SQLite prototype in batches of 50 000 and checks the count of each day afterwards.",
        (
            "bash",
            {"command": "python tools/migrate.py --dry-run"},
            "dry run: 90 214 551 rows in 1 805 batches",
        ),
    ).turn(
        "Go ahead.",
        "Done in 47 minutes. Three days had duplicate readings from gauge 117; I kept the later reading of each pair.",
        (
            "bash",
            {"command": "python tools/migrate.py"},
            "copied 90 214 551 rows, 3 days with duplicates",
        ),
    ).compact(
        "The old SQLite readings (90 million rows) were migrated to TimescaleDB in 47 minutes. Gauge 117 had duplicates on three days; the later reading of each pair was kept."
    ).turn(
        "Can the SQLite prototype be deleted now?",
        "Yes. The counts agree for every day, and the dump of the prototype is on the second site.",
    )
    found.append(long_talk)

    agent = SessionWriter(
        "6f0d1f4e-52c3-4a5e-9a0e-0f4b7a3f6c21",
        8.1,
        TIDEPOOL,
        depth=1,
        parentSession="tp-0005-migration-day",
        origin="subagent",
    )
    agent.turn(
        "Count the rows in the prototype database, per day, and report days with duplicates.",
        "The prototype database has 90 214 551 rows; 2026-03-02, 2026-03-03 and 2026-03-09 hold duplicates of gauge 117.",
    )
    found.append(agent)

    cache = SessionWriter("tp-0006-ci-cache", 9, TIDEPOOL)
    cache.turn(
        "CI fails with 'cache database is malformed'. What is that?",
        "That is only the mypy cache, a small file in .mypy_cache. I deleted the directory in the pipeline and the build is green again. It has nothing to do with Tidepool itself.",
    )
    found.append(cache)

    birds = SessionWriter("site-0001-bird-page", 10, SITE)
    birds.turn(
        "Add a page about the terns on the breakwater to the public site.",
        "The page is up. The Latin names come from the national bird database, and the photo credit names Ana Ruiz.",
    )
    found.append(birds)

    emoji = SessionWriter("site-0002-icons", 11, SITE)
    emoji.turn(
        "The wave icon looks broken on Android.",
        "Android 9 ships an older emoji database without that code point, so I replaced the character by an SVG. 🌊 stays in the page title.",
    )
    found.append(emoji)

    chinese = SessionWriter("tp-0007-zh-report", 12, TIDEPOOL)
    chinese.turn(
        "年度报告要出中文版。字体用什么？",
        "中文版年度报告使用思源宋体，正文 10.5pt，标题用思源黑体。图表里的单位保持公制。",
    ).turn(
        "数据库 里的站点名称有中文吗？",
        "有。stations 表有 name_zh 列，四百个站点里三百九十二个已经填写。",
    )
    found.append(chinese)

    backup = SessionWriter("tp-0008-backup-drill", 15, TIDEPOOL)
    backup.turn(
        "Run the quarterly restore drill.",
        "Restored last night's dump on the spare machine in 22 minutes. All hypertables are present and the newest reading is from 23:59:50.",
    )
    backup.open_turn("Now break it on purpose and try point-in-time recovery.")
    backup.assistant(
        1,
        [
            text_block("Starting the recovery rehearsal."),
            {
                "type": "tool-call",
                "id": "call_pitr",
                "name": "bash",
                "arguments": '{"command": "pg_ctl promote -D /srv/spare"}',
            },
        ],
    )
    backup.add(
        "tool/call",
        {
            "turn": backup.turns,
            "step": 1,
            "callId": "call_pitr",
            "name": "bash",
            "arguments": '{"command": "pg_ctl promote -D /srv/spare"}',
        },
    )
    found.append(backup)

    reading = SessionWriter("notes-0001-reading-list", 16, NOTES)
    reading.turn(
        "Make a reading list for the winter.",
        "1. A history of tide prediction machines. 2. The database of lost lighthouses, a novel. 3. A field guide to estuaries.",
    )
    found.append(reading)

    loose = SessionWriter("scratch-0001", 17, None)
    loose.turn(
        "What is the plural of index?", "Both indexes and indices are correct; for a book, indexes."
    )
    found.append(loose)
    return found


def main() -> None:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "sample-home"
    if out.exists():
        shutil.rmtree(out / "sessions", ignore_errors=True)
    for session in sessions():
        session.write(out / "sessions")
    print(f"{len(sessions())} sessions in {out}")


if __name__ == "__main__":
    main()

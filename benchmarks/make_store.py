#!/usr/bin/env python3
# ruff: noqa
"""Write a synthetic session store (generation 4, zstd) that the real engine accepts.  Needs: pip install zstandard

  make_store.py --sessions 31 --events 187706 --text-events 8187 --seed 1 --out HOME
  make_store.py --sessions 3000 --events 180000 --seed 3 --out HOME

Same arguments give the same bytes. HOME/sessions gets the logs, HOME/store.json the totals and some queries with known counts:
rare terms (one document each), a common term, a phrase, CJK runs, a term that does not occur.
--text-events N thins the searchable events out with log-only rows, as in long real sessions (default: what the turns give, about 55 %).
--words is the mean length of a tool result in words; most bytes are tool results and the packed streams of assistant messages.
"""

import argparse, itertools, json, math, random, re, sys, uuid
from pathlib import Path

import zstandard

T0 = 1_790_000_000_000
COMMON = """the of to a in is that it for on with as this be are was by at from or an not have we can will if you file test code line error
use run when which all one do but has there then so what no into should would could function value name type list data time path
result build change check call set new user session index query event search store cache read write open close update remove add
table column server client request response message token frame byte string number object array key module package version commit
branch merge issue review release deploy config option default limit cursor page order sort rank match score phrase snippet text
""".split()
PRIVATE = "zebra walnut copper lantern harbor meadow violin glacier saffron pebble orchard comet thicket mosaic ember quartz".split()
CJK = "数据库连接池会话搜索索引查询结果缓存文件测试错误修复部署配置版本提交合并请求响应消息页面排序匹配片段时间路径用户系统模型工具调用压缩分支"
JP = "検索設定を更新しましたテストが失敗しているためログを確認してください"
CWDS = [
    "/home/dev/work/api",
    "/home/dev/work/web app",
    "/home/dev/work/项目/搜索",
    "/home/dev/work/tools~old",
    "/srv/build:1/main",
    "/",
    None,
]


def escape(text):
    units = text.encode("utf-16-le", "surrogatepass")
    out = []
    for i in range(0, len(units), 2):
        n = units[i] | units[i + 1] << 8
        c = chr(n)
        out.append(c if n < 128 and (c.isalnum() or c in "._-") else f"~{n:04X}")
    return "".join(out)


def project(cwd):
    if cwd is None:
        return "_no-cwd"
    key = "".join(escape(part) for part in re.sub(r"[/\\:]+", "-", cwd)).lstrip("-") or "root"
    return "--" + key[:251] + "--"


def pack(seqs):
    """Runs of three and more neighbours become [first, last]."""
    out, i = [], 0
    while i < len(seqs):
        j = i
        while j + 1 < len(seqs) and seqs[j + 1] == seqs[j] + 1:
            j += 1
        out.extend([[seqs[i], seqs[j]]] if j - i >= 2 else seqs[i : j + 1])
        i = j + 1
    return out


def has_text(row):
    kind, data = row["type"], row["data"]
    if kind == "turn/end":
        return data["reason"]["kind"] in ("error", "aborted")
    return kind in ("user/message", "tool/call", "tool/result", "assistant/message")


class Text:
    def __init__(self, rng):
        self.rng = rng
        syl = [c + v for c in "bcdfghklmnprstvwz" for v in "aeiou"]
        words, seen = list(COMMON), set(COMMON) | set(PRIVATE)
        while len(words) < 12000:
            w = "".join(rng.choice(syl) for _ in range(rng.choice((2, 2, 3, 3, 4)))) + rng.choice(
                ("", "", "n", "s", "r", "ing", "ed")
            )
            if w not in seen:
                seen.add(w)
                words.append(w)
        self.words = words
        self.cum = list(itertools.accumulate(1 / (i + 2.7) for i in range(len(words))))

    def run(self, mean):
        n = max(3, int(self.rng.lognormvariate(math.log(mean), 0.8)))
        return self.rng.choices(self.words, cum_weights=self.cum, k=min(n, 12000))

    def prose(self, mean, cjk=0.08):
        r = self.rng
        w = self.run(mean)
        if r.random() < cjk:
            for _ in range(r.randint(1, 3)):
                a = r.randrange(0, len(CJK) - 6)
                w.insert(r.randrange(len(w) + 1), CJK[a : a + r.randint(2, 6)])
        if r.random() < cjk / 4:
            w.insert(r.randrange(len(w) + 1), JP[: r.randint(4, len(JP))])
        for i in range(9, len(w), r.randint(7, 15)):
            w[i] += r.choice((".", ",", ";", ":", ".\n"))
        return " ".join(w)

    def output(self, mean):
        r = self.rng
        lines, w = [], self.run(mean)
        for i in range(0, len(w), 8):
            k = r.random()
            chunk = " ".join(w[i : i + 8])
            lines.append(
                f"src/{w[i]}/{w[-1]}.py:{r.randint(1, 999)}: {chunk}"
                if k < 0.3
                else f"{r.randint(0, 99999):5d}\t{chunk}"
                if k < 0.6
                else chunk
            )
        return "\n".join(lines) + "\n"


class Session:
    def __init__(self, store, sid, created, cwd, **header):
        self.store, self.id, self.cwd, self.rows, self.time = store, sid, cwd, [], created
        self.header = {
            "type": "session",
            "version": 4,
            "id": sid,
            "createdAt": created,
            **({"cwd": cwd} if cwd else {}),
            **header,
        }
        self.turn = self.docs = 0
        self.surface = []

    def add(self, kind, data, doc=False, **more):
        self.time += self.store.rng.randint(0, 1500)
        seq = len(self.rows)
        self.rows.append({"type": kind, "seq": seq, "time": self.time, "data": data, **more})
        if "surfaceOp" in more and more["surfaceOp"] == "append":
            self.surface.append(seq)
        self.docs += doc
        return seq

    def rid(self):
        return str(uuid.UUID(int=self.store.rng.getrandbits(128), version=4))

    def fill(self):
        s = self.store
        while (
            s.share
            and self.docs + self.base_docs > s.share * len(self.rows)
            and len(self.rows) < self.goal
        ):
            self.add(
                "session-log-deepseek/delivery-accepted",
                {"sessionId": self.id, "sessionFormatVersion": 4, "throughSeq": len(self.rows) - 1},
            )

    base_docs = 0

    def message(self, text, kind="user"):
        self.add(
            "user/message",
            {
                "content": [{"type": "text", "text": text}],
                "source": {"kind": kind},
                "role": "user",
                "id": self.rid(),
            },
            doc=True,
            surfaceOp="append",
        )

    def assistant(self, turn, step, text, calls, final):
        r = self.store.rng
        blocks = (
            [{"type": "reasoning", "text": self.store.text.prose(30)}] if r.random() < 0.5 else []
        ) + ([{"type": "text", "text": text}] if text else [])
        blocks += [
            {"type": "tool-call", "id": c[0], "name": c[1], "arguments": c[2]} for c in calls
        ]
        stream = []
        for i, b in enumerate(blocks):
            stream.append(
                {
                    "type": "chunk",
                    "time": self.time,
                    "chunk": {"type": "block-start", "index": i, "blockType": b["type"]},
                }
            )
            body = b.get("text") or b.get("arguments") or ""
            parts = [body[k : k + 12] for k in range(0, len(body), 12)]
            if b["type"] == "tool-call":
                stream.append(
                    {
                        "type": "tool-call-chunks",
                        "time0": self.time,
                        "index": i,
                        "dt": [0] * max(0, len(parts) - 1),
                        "id": b["id"],
                        "args": parts,
                    }
                )
            else:
                stream.append(
                    {
                        "type": b["type"] + "-chunks",
                        "time0": self.time,
                        "index": i,
                        "dt": [0] * max(0, len(parts) - 1),
                        "texts": parts,
                    }
                )
            stream.append(
                {
                    "type": "chunk",
                    "time": self.time,
                    "chunk": {"type": "block-end", "index": i, "block": b},
                }
            )
        usage = {
            "inputTokens": r.randint(500, 90000),
            "outputTokens": r.randint(5, 900),
            "cacheReadTokens": 0,
            "cacheWriteTokens": 0,
            "totalTokens": 1000,
        }
        stream.append(
            {
                "type": "chunk",
                "time": self.time,
                "chunk": {"type": "finish", "reason": {"kind": "stop" if final else "tool-calls"}},
            }
        )
        self.add(
            "assistant/message",
            {
                "turn": turn,
                "step": step,
                "message": {
                    "role": "assistant",
                    "content": blocks,
                    "source": {"kind": "model", "provider": "example", "model": "example-model"},
                    "id": self.rid(),
                },
                "usage": usage,
                "stream": stream,
            },
            doc=bool(text or calls),
            surfaceOp="append",
        )

    def one_turn(self, left):
        s, r, t = self.store, self.store.rng, self.store.text
        self.turn += 1
        n = self.turn
        self.add("turn/start", {"turn": n})
        steps = max(1, min(int(r.expovariate(1 / 4)) + 1, left // 8))
        for step in range(1, steps + 1):
            self.add("step/start", {"turn": n, "step": step})
            if step == 1:
                if not self.surface:
                    self.add(
                        "system/message",
                        {
                            "turn": n,
                            "step": 1,
                            "message": {
                                "role": "system",
                                "content": [
                                    {
                                        "type": "text",
                                        "text": "System prompt of a synthetic session.",
                                    }
                                ],
                                "source": {"kind": "system-prompt"},
                                "id": self.rid(),
                            },
                        },
                        surfaceOp="append",
                    )
                self.message(s.plant(t.prose(18)))
                if n == 1:
                    self.add(
                        "session/title",
                        {
                            "title": " ".join(t.run(4))[:60],
                            "messageSeqs": [len(self.rows) - 1],
                            "source": {"kind": "fallback"},
                        },
                    )
            self.fill()
            final = step == steps
            calls = []
            if not final:
                for k in range(1 if r.random() < 0.8 else 2):
                    name = r.choice(("bash", "read", "grep", "edit", "write"))
                    args = {
                        "bash": {
                            "command": "rg -n " + " ".join(t.run(4)),
                            "description": " ".join(t.run(4)),
                        },
                        "grep": {"pattern": t.run(3)[0], "path": "src"},
                    }.get(name, {"file_path": f"{self.cwd or '/tmp'}/src/{t.run(3)[0]}.py"})
                    calls.append(
                        (f"call_{len(self.rows)}_{k}", name, json.dumps(args, ensure_ascii=False))
                    )
            text = s.plant(t.prose(45 if final else 22)) if final or r.random() < 0.6 else ""
            if not text and not calls:
                text = "ok"
            self.assistant(n, step, text, calls, final)
            for cid, name, args in calls:
                at = self.add(
                    "tool/call",
                    {"turn": n, "step": step, "callId": cid, "name": name, "arguments": args},
                    doc=True,
                )
                self.fill()
                bad = r.random() < 0.06
                data = {
                    "turn": n,
                    "step": step,
                    "message": {
                        "role": "tool",
                        "source": {"kind": "tool", "callId": cid},
                        "toolCallId": cid,
                        "content": [{"type": "text", "text": s.plant(t.output(s.words))}],
                        "isError": bad,
                        "id": self.rid(),
                    },
                }
                if bad:
                    data["error"] = {"name": "ToolError", "code": "TOOL_FAILED"}
                self.add("tool/result", data, doc=True, sourceEventSeqs=[at], surfaceOp="append")
            self.add("step/end", {"turn": n, "step": step})
        kind = r.random()
        reason = (
            {"kind": "completed"}
            if kind < 0.94
            else {"kind": "aborted"}
            if kind < 0.97
            else {
                "kind": "error",
                "error": {"message": "upstream failed: " + " ".join(t.run(5)), "code": "SERVER"},
            }
        )
        self.add("turn/end", {"turn": n, "reason": reason}, doc=reason["kind"] != "completed")
        self.fill()

    def compact(self):
        shadowed = self.surface[1:]
        if len(shadowed) < 4:
            return
        cid = self.rid()
        start = self.add("compaction/start", {"compactionId": cid, "turn": None})
        summary = self.store.text.prose(120)
        at = self.add(
            "compaction/summary",
            {
                "compactionId": cid,
                "summary": [{"type": "text", "text": summary}],
                "rawOutput": [{"type": "text", "text": summary}],
                "llmStreamCall": True,
                "shadowedRange": {"start": shadowed[0], "end": shadowed[-1]},
                "shadowedSeqs": shadowed,
                "shadowedTokenCount": 1000,
                "provider": "example",
                "model": "example-model",
                "maxTokens": 65536,
                "usage": {
                    "inputTokens": 1000,
                    "outputTokens": 100,
                    "cacheReadTokens": 0,
                    "cacheWriteTokens": 0,
                    "totalTokens": 1100,
                },
            },
        )
        seq = self.add(
            "user/message",
            {
                "content": [
                    {"type": "text", "text": "Checkpoint of the earlier conversation."},
                    {"type": "text", "text": summary},
                ],
                "source": {"kind": "compact-checkpoint", "compactionId": cid},
                "role": "user",
                "id": self.rid(),
            },
            doc=True,
            sourceEventSeqs=pack([start, at] + shadowed),
            surfaceOp={"op": "replace", "startSeq": shadowed[0], "endSeq": shadowed[-1]},
        )
        self.surface[1:] = [seq]
        self.add("compaction/end", {"compactionId": cid, "turn": None})

    def grow(self, goal, compactions=0):
        self.goal = goal
        marks = sorted(self.store.rng.uniform(0.3, 0.9) * goal for _ in range(compactions))
        while len(self.rows) + 9 <= goal:
            self.one_turn(goal - len(self.rows))
            if marks and len(self.rows) >= marks[0]:
                marks.pop(0)
                self.compact()
        while len(self.rows) < goal:
            self.add(
                "session-log-deepseek/delivery-accepted",
                {"sessionId": self.id, "sessionFormatVersion": 4, "throughSeq": len(self.rows) - 1},
            )

    def write(self, root):
        r = self.store.rng
        dump = lambda o: json.dumps(o, ensure_ascii=False, separators=(",", ":")) + "\n"
        folder = (
            root
            / project(self.cwd)
            / {".": "~002E", "..": "~002E~002E"}.get(self.id, escape(self.id))
        )
        folder.mkdir(parents=True, exist_ok=True)
        frame = lambda text: zstandard.ZstdCompressor(level=3, write_checksum=True).compress(
            text.encode("utf-8")
        )
        size = 0
        with open(folder / "session.v4.jsonl.zstd", "wb") as f:
            f.write(frame(dump(self.header)))
            i = 0
            while i < len(self.rows):
                n = r.randint(1, 12)
                text = "".join(dump(row) for row in self.rows[i : i + n])
                size += len(text.encode("utf-8"))
                f.write(frame(text))
                i += n
        (folder / "session.lock").touch()
        return size


class Store:
    def __init__(self, a):
        self.rng = random.Random(a.seed)
        self.text = Text(self.rng)
        self.share = a.text_events / a.events if a.text_events else 0
        self.words = a.words
        self.planted = {}
        self.next_rare = 0

    def plant(self, text):
        k = self.rng.random()
        if k < 0.004:
            word = f"qx{self.next_rare:05d}zv"
            self.next_rare += 1
            self.planted[word] = self.planted.get(word, 0) + 1
        elif k < 0.02:
            word = self.rng.choice(PRIVATE)
        else:
            return text
        cut = text.find(" ", self.rng.randrange(len(text)))
        return text + " " + word if cut < 0 else text[:cut] + " " + word + text[cut:]


def build(a):
    st = Store(a)
    r, root = st.rng, Path(a.out) / "sessions"
    root.mkdir(parents=True, exist_ok=False)
    weights = [r.lognormvariate(0, a.spread) for _ in range(a.sessions)]
    goals = [max(12, int(a.events * w / sum(weights))) for w in weights]
    goals[goals.index(max(goals))] += max(0, a.events - sum(goals))
    mains, total = (
        [],
        dict(sessions=0, events=0, text_events=0, bytes=0, subagents=0, forks=0, compactions=0),
    )
    created = T0
    for i, goal in enumerate(goals):
        created += r.randint(1000, 7_200_000)
        kind = r.random()
        comp = sum(r.random() < 0.5 for _ in range(2)) if goal > 150 and r.random() < 0.4 else 0
        parent = r.choice(mains) if mains else None
        base = parent and next(
            (
                k
                for k in range(min(len(parent.rows), goal // 2) - 1, -1, -1)
                if parent.rows[k]["type"] == "turn/end"
            ),
            None,
        )
        if parent and kind < 0.20:
            s = Session(
                st,
                str(uuid.UUID(int=r.getrandbits(128), version=4)),
                created,
                parent.cwd,
                parentSession=parent.id,
                isSeeded=False,
                origin="subagent",
                delegationDepth=1,
            )
            total["subagents"] += 1
        elif parent and kind < 0.32 and base and parent.simple:
            s = Session(
                st,
                f"session-{r.getrandbits(128):032x}",
                created,
                parent.cwd,
                parentSession=parent.id,
                isSeeded=True,
                delegationDepth=0,
            )
            s.rows = [dict(row) for row in parent.rows[: base + 1]]
            s.turn = max(row["data"]["turn"] for row in s.rows if row["type"] == "turn/start")
            s.surface = [row["seq"] for row in s.rows if row.get("surfaceOp") == "append"]
            s.base_docs = sum(
                row["type"] in ("user/message", "assistant/message", "tool/call", "tool/result")
                for row in s.rows
            )
            s.time = max(created, s.rows[-1]["time"])
            s.rows.append(
                {
                    "type": "session/end-seed",
                    "seq": base + 1,
                    "time": s.rows[-1]["time"],
                    "data": {"inherited": True},
                }
            )
            total["forks"] += 1
        else:
            cwd = r.choices(CWDS, (30, 20, 15, 10, 10, 2, 3))[0]
            s = Session(
                st,
                f"session-{r.getrandbits(128):032x}",
                created,
                cwd,
                isSeeded=False,
                delegationDepth=0,
            )
        s.simple = comp == 0
        s.grow(goal, comp)
        if len(mains) < 40 and "parentSession" not in s.header:
            mains.append(s)
        total["bytes"] += s.write(root)
        total["sessions"] += 1
        total["events"] += len(s.rows)
        total["text_events"] += sum(has_text(row) for row in s.rows)
        total["compactions"] += sum(row["type"] == "compaction/end" for row in s.rows)
        if s not in mains:
            s.rows = []
    rare = [w for w, n in st.planted.items() if n == 1]
    note = {
        "compression": "zstd",
        "args": {k: v for k, v in vars(a).items() if k != "out"},
        "total": total,
        "queries": {
            "rare": (rare[len(rare) // 2 :] or PRIVATE)[:3],
            "seldom": PRIVATE[:3],
            "common": ["the", "error"],
            "phrase": ["of the", "to a", "error use"],
            "cjk": ["数据库连接池", "数据库", "会话搜索"],
            "miss": ["qqxnotthere"],
        },
    }
    text = json.dumps(note, ensure_ascii=False, indent=1) + "\n"
    (Path(a.out) / "home.json").write_text('{"compression": "zstd"}\n', "utf-8")
    (Path(a.out) / "store.json").write_text(text, "utf-8")
    return note


def main():
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ap.add_argument("--sessions", type=int, required=True)
    ap.add_argument("--events", type=int, required=True)
    ap.add_argument("--text-events", type=int, default=0)
    ap.add_argument("--words", type=int, default=120)
    ap.add_argument(
        "--spread", type=float, default=0.8, help="how uneven the session sizes are (sigma)"
    )
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--out", required=True)
    print(json.dumps(build(ap.parse_args()), ensure_ascii=False))


if __name__ == "__main__":
    main()

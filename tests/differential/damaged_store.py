"""Stores of damaged logs of the current format, and requests about each of them.

Each session is a random one (`random_store`) with changed rows (`old_store.mutated`), changed
bytes, or both. Headers stay whole: a bad one would only take its session, or the whole store, away.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import old_store
import random_store
import zstandard

SESSIONS = 20
READS = ("listEvents", "readSurfaceFull", "readTitle")

Row = dict[str, Any]


def build(home: Path, seed: int) -> list[Row]:
    """Write the store of `seed` below `home`, zstd for odd seeds; returns requests about it."""
    rng = random.Random(seed)
    zstd = bool(seed % 2)
    logs: list[random_store.Log] = []
    for number in range(SESSIONS):
        logs.append(random_store.session(rng, number, logs))
    requests: list[tuple[str, Row]] = [("listSessions", {})]
    for log in logs:
        header, rows = json.loads(json.dumps([log.header, log.rows]))
        lines = [json.dumps(row, ensure_ascii=False).encode() for row in [*rows, b""][:-1]] + [b""]
        if rows and rng.random() < 0.8:
            lines = old_store.mutated(rng, header, rows)
        data = _frames(rng, header, lines) if zstd else _lines(header, lines)
        first = data[0]
        rest = b"".join(data[1:])
        if rng.random() < 0.3:
            rest = _damaged(rng, rest)
        folder = random_store.folder(home / "sessions", header)
        folder.mkdir(parents=True)
        name = "session.v4.jsonl.zstd" if zstd else "session.v4.jsonl"
        (folder / name).write_bytes(first + rest)
        requests += _about(rng, header["id"])
    note = {"compression": "zstd" if zstd else "none"}
    (home / "home.json").write_text(json.dumps(note), "utf-8")
    return [
        {"id": str(number), "op": op, "args": args} for number, (op, args) in enumerate(requests)
    ]


def _about(rng: random.Random, session_id: str) -> list[tuple[str, Row]]:
    one = {"sessionId": session_id}
    # Projections (of an agent's inbox, for instance) are not what is compared here.
    return [
        ("observeSession", {**one, "projectionMode": "none"}),
        *((op, one) for op in READS),
        ("filterEvents", {**one, "filters": []}),
        ("readEvent", {**one, "seq": rng.randint(0, 20), "before": 3, "after": 3}),
        ("traceEvent", {**one, "seq": rng.randint(0, 20)}),
    ]


def _lines(header: Row, lines: list[bytes]) -> list[bytes]:
    return [random_store.line(header), b"\n".join(lines)]


def _frames(rng: random.Random, header: Row, lines: list[bytes]) -> list[bytes]:
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=rng.random() < 0.9)
    frames = [random_store.line(header)]
    whole, tail = lines[:-1], lines[-1]
    while whole:
        size = rng.randint(1, 9)
        frames.append(b"".join(part + b"\n" for part in whole[:size]))
        whole = whole[size:]
    if tail:
        frames.append(tail)
    return [compressor.compress(frame) for frame in frames]


def _damaged(rng: random.Random, data: bytes) -> bytes:
    if not data:
        return rng.choice((b"\n", b"{}\n", b"\x28", b"\x28\xb5\x2f\xfd", b"x"))
    at = rng.randrange(len(data))
    end = min(len(data), at + rng.choice((1, 4, 30, 400)))
    return rng.choice(
        (
            data[:at],
            data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :],
            data[:at] + data[end:],
            data[:end] + data[at:],
            data + data[at:],
            data + rng.choice((b"\0", b"\n", b"{}", b"\x28\xb5", b"\x50\x2a\x4d\x18\0\0\0\0")),
        )
    )

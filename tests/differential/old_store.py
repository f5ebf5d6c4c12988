"""Stores of mutated logs of formats 0 to 3, and requests about them.

The recorded old stores are the material: each session is one of their logs with one to three
changes - a value replaced, a key removed or added, rows dropped, moved, doubled, swapped, inserted
or torn, references moved by one, the inherited part made longer or shorter.
"""

from __future__ import annotations

import copy
import functools
import io
import json
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

DATA = Path(__file__).resolve().parent.parent / "data"
ARCHIVES = ("old-homes.tar.gz", "old-edges.tar.gz")
SESSIONS = 24
READS = ("listEvents", "readSurface", "readTitle")

Row = dict[str, Any]
Log = tuple[Row, list[Row]]

VALUES: list[Any] = [
    *(None, True, False, "", "zz", 0, 1, 2, -1, 1.5, 3.0, [], {}, [1], {"a": 1}),
    *("append", [[1, 2]], [0], "user", "tool", {"kind": "user"}),
    *({"op": "replace", "start": 2, "end": 2}, {"op": "replace", "startSeq": 2, "endSeq": 2}),
]
INSERTED: list[tuple[str, Row]] = [
    ("plan/mode", {"active": True}),
    ("turn/end", {"turn": 1, "reason": {"kind": "completed"}}),
    ("turn/start", {"turn": 2}),
    ("step/start", {"turn": 1, "step": 2}),
    ("step/end", {"turn": 1, "step": 1}),
    ("session/end-seed", {}),
    ("session/end-seed", {"inherited": True}),
    ("compaction/start", {"compactionId": "c", "turn": None}),
    ("llm/retry-started", {"retryId": "r", "turn": 1, "step": 1, "retry": 1}),
    ("todo/write", {"todos": []}),
    ("future/x", {}),
    ("assistant/chunk", {"turn": 1, "step": 1, "chunk": {"type": "finish", "reason": {}}}),
]
TYPES = [kind for kind, _ in INSERTED] + ["user/message", "tool/result", "text-chunks"]
NUMBERS = ("seq", "seq0", "turn", "step", "start", "end", "startSeq", "endSeq")


def build(home: Path, seed: int) -> list[dict[str, Any]]:
    """Write the store of `seed` below `home`; returns requests about it."""
    rng = random.Random(seed)
    ids = [f"old-{number:02d}" for number in range(SESSIONS)]
    for session_id in ids:
        header, rows = copy.deepcopy(rng.choice(_material()))
        lines = mutated(rng, header, rows)
        kept = {key: value for key, value in header.items() if key != "origin"}
        _write(home, {**kept, "id": session_id, "cwd": "/w"}, lines)
    requests: list[tuple[str, Row]] = [
        ("listSessions", {}),
        ("searchSessions", {"query": "walrus"}),
    ]
    # Projections (of an agent's inbox, for instance) are not what is compared here.
    for session_id in ids:
        requests.append(("observeSession", {"sessionId": session_id, "projectionMode": "none"}))
        requests += [(op, {"sessionId": session_id}) for op in READS]
    return [
        {"id": str(number), "op": op, "args": args} for number, (op, args) in enumerate(requests)
    ]


@functools.cache
def _material() -> list[Log]:
    logs: list[Log] = []
    for name in ARCHIVES:
        with tarfile.open(DATA / name) as archive:
            for member in archive.getmembers():
                opened = archive.extractfile(member) if "/sessions/" in member.name else None
                if opened is not None and "session." in member.name:
                    logs.extend(_parsed(member.name, opened.read()))
    return logs


def _parsed(name: str, data: bytes) -> Iterator[Log]:
    if name.endswith(".zstd"):
        frames = zstandard.ZstdDecompressor()
        data = frames.stream_reader(io.BytesIO(data), read_across_frames=True).read()
    try:
        header, *rows = [json.loads(line) for line in data.split(b"\n") if line]
    except ValueError:
        return
    number = header["version"]
    if number <= 3 and Path(name).name.startswith(_file_name(number)):
        yield header, rows


def _file_name(generation: int) -> str:
    return f"session.v{generation}.jsonl" if generation else "session.jsonl"


def _write(home: Path, header: Row, lines: list[bytes]) -> None:
    folder = home / "sessions" / "--w--" / header["id"]
    folder.mkdir(parents=True)
    text = b"\n".join([_line(header), *lines])
    (folder / _file_name(header["version"])).write_bytes(text)


def _line(row: Any) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def mutated(rng: random.Random, header: Row, rows: list[Row]) -> list[bytes]:
    raw: dict[int, bytes] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if rows:
            rng.choice(_MUTATIONS)(rng, header, rows)
    for _ in range(rng.choice((0, 0, 0, 1))):
        raw[rng.randrange(len(rows) + 1)] = rng.choice((b"garbage", b"", b"[]", b"null"))
    lines: list[bytes] = []
    for number, row in enumerate(rows):
        lines.extend([raw[number]] if number in raw else [])
        lines.append(_line(row))
    torn = rng.random() < 0.1
    return [*lines[:-1], lines[-1][:-5]] if torn and lines else [*lines, b""]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 6)):
            yield from _places(value[index], (*path, index))


def _pick(rng: random.Random, row: Row) -> tuple[Any, Any]:
    """A random place in a row, shallow ones more often: its container and its key."""
    places = sorted((p for p in _places(row) if p not in (("seq",), ("type",))), key=len)
    shallow = places[: max(3, len(places) // 2)]
    *path, key = rng.choice(shallow if rng.random() < 0.6 else places)
    container: Any = row
    for step in path:
        container = container[step]
    return container, key


def _replace_value(rng: random.Random, header: Row, rows: list[Row]) -> None:
    container, key = _pick(rng, rng.choice(rows))
    container[key] = copy.deepcopy(rng.choice(VALUES))


def _remove_key(rng: random.Random, header: Row, rows: list[Row]) -> None:
    container, key = _pick(rng, rng.choice(rows))
    del container[key]


def _add_key(rng: random.Random, header: Row, rows: list[Row]) -> None:
    row = rng.choice(rows)
    containers = [row, *(value for value in row.values() if isinstance(value, dict))]
    key = rng.choice(("zz", "ignorable", "surfaceOp", "sourceEventSeqs", "error", "id", "message"))
    rng.choice(containers)[key] = copy.deepcopy(rng.choice(VALUES))


def _move_number(rng: random.Random, header: Row, rows: list[Row]) -> None:
    row = rng.choice(rows)
    data = row["data"] if isinstance(row.get("data"), dict) else row
    for container in (row, data):
        for key in NUMBERS:
            if type(container.get(key)) is int and key != "seq" and rng.random() < 0.5:
                container[key] += rng.choice((-1, 1))


def _drop_rows(rng: random.Random, header: Row, rows: list[Row]) -> None:
    at = rng.randrange(len(rows))
    del rows[at : rng.choice((at + 1, at + 2, len(rows)))]


def _move_row(rng: random.Random, header: Row, rows: list[Row]) -> None:
    row = rows.pop(rng.randrange(len(rows)))
    rows.insert(rng.randrange(len(rows) + 1), row)
    _number(rows)


def _double_row(rng: random.Random, header: Row, rows: list[Row]) -> None:
    at = rng.randrange(len(rows))
    rows.insert(at, copy.deepcopy(rows[at]))
    _number(rows)


def _insert_row(rng: random.Random, header: Row, rows: list[Row]) -> None:
    kind, data = rng.choice(INSERTED)
    row: Row = {"type": kind, "seq": 0, "time": 1, "data": copy.deepcopy(data)}
    if kind == "future/x" and rng.random() < 0.5:
        row["ignorable"] = True
    rows.insert(rng.randrange(len(rows) + 1), row)
    _number(rows)


def _change_type(rng: random.Random, header: Row, rows: list[Row]) -> None:
    rng.choice(rows)["type"] = rng.choice(TYPES)


def _change_inherited(rng: random.Random, header: Row, rows: list[Row]) -> None:
    if header["version"] < 2:
        header["seedLength"] = rng.randrange(len(rows) + 3)
    else:
        header["isSeeded"] = not header["isSeeded"]


def _number(rows: list[Row]) -> None:
    """Number the rows again; what they cite stays."""
    number = 0
    for row in rows:
        data = row.get("data")
        packed = data.get("texts") or data.get("args") if isinstance(data, dict) else None
        if "seq0" in row:
            row["seq0"] = number
            number += len(packed) if isinstance(packed, list) else 1
        else:
            row["seq"] = number
            number += 1


_MUTATIONS = (
    *(_replace_value, _replace_value, _replace_value, _remove_key, _remove_key, _add_key),
    *(_move_number, _drop_rows, _move_row, _double_row, _insert_row, _change_type),
    _change_inherited,
)

"""Random requests about a random store, from a seed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from awkward_text import BLANKS, WORDS, text
from random_store import CWDS, T0
from zstandard import ZstdDecompressor

Request = dict[str, Any]
SURFACES = ("current", "shadowed", "log-only")
TYPES = ("user/message", "assistant/message", "tool/call", "tool/result", "turn/end", "todo/write")

# Containers that JavaScript would turn into odd texts are left out: [] for "", for instance.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2.0, 1.5, 20, 50, 51, 100, 101, 2**53, -(2**63), 1e300),
    *("", " ", "1", "newt", "\u0000", "\ud800", '"', "x" * 300, "e30", "a/b", "..", "/"),
)
TITLED: tuple[Any, ...] = ("nowhere", "", 5, True, None, "x" * 300)


def requests(home: Path, seed: int, count: int) -> list[Request]:
    """Return `count` requests with the ids "1", "2", …; some follow an earlier one's cursor."""
    rng = random.Random(seed * 7919 + 1)
    ids = session_ids(home)
    made: list[Request] = []
    while len(made) < count:
        operation, arguments = _request(rng, ids)
        made.append({"op": operation, "args": arguments})
        if operation.startswith("search") and rng.random() < 0.4:
            for _ in range(2):
                cursor = {"$cursorOf": str(len(made))}
                made.append({"op": operation, "args": {**arguments, "cursor": cursor}})
    return [{"id": str(number), **request} for number, request in enumerate(made[:count], 1)]


def session_ids(home: Path) -> list[str]:
    found = []
    for path in sorted((home / "sessions").rglob("session.v4.jsonl*")):
        with path.open("rb") as log:
            source = ZstdDecompressor().stream_reader(log) if path.suffix == ".zstd" else log
            head = source.read(4096)
        found.append(str(json.loads(head.split(b"\n")[0])["id"]))
    return found


def _request(rng: random.Random, ids: list[str]) -> tuple[str, Request]:
    session = rng.choice(ids) if rng.random() < 0.97 else "nowhere"
    one: Request = {"sessionId": session}
    if rng.random() < 0.12:
        return _odd(rng, session)
    choice = rng.random()
    if choice < 0.34:
        return "searchSessions", _search_sessions(rng, ids)
    if choice < 0.56:
        extra: Request = {}
        if rng.random() < 0.4:
            extra["filters"] = [_event_filter(rng) for _ in range(rng.randint(0, 2))]
        return "searchEvents", {**one, "query": _query(rng), **extra, **_limit(rng)}
    if choice < 0.62:
        return "filterSessions", {"filters": [_session_filter(rng, ids) for _ in range(2)]}
    if choice < 0.72:
        filters = [_event_filter(rng, literal=True) for _ in range(rng.randint(0, 2))]
        return "filterEvents", {**one, "filters": filters}
    if choice < 0.78:
        window = {name: rng.choice((0, 1, 3, 50, 51, -1)) for name in ("before", "after")}
        return "readEvent", {**one, "seq": rng.randint(0, 30), **window}
    if choice < 0.82:
        return "traceEvent", {**one, "seq": rng.randint(0, 30)}
    if choice < 0.84:
        return "readTitleSnapshots", {"sessionIds": [rng.choice([*ids, "nowhere"]) for _ in "abc"]}
    whole = (
        "listEvents",
        "readTitle",
        "readTitleSnapshot",
        "readSessionFull",
        "readSurfaceFull",
        "traceSession",
        "observeSessionFull",
    )
    if choice < 0.98:
        return rng.choice(whole), one
    return "listSessions", {}


def _odd(rng: random.Random, session: str) -> tuple[str, Request]:
    """Return a request with arguments that most likely do not fit."""
    one: Request = {"sessionId": session}
    value = rng.choice(ODD)
    choice = rng.randrange(8)
    if choice == 0:
        operation = rng.choice(("listEvents", "readTitle", "observeSessionFull", "traceSession"))
        return operation, {"sessionId": value}
    if choice == 1:
        return rng.choice(("readEvent", "traceEvent")), {**one, "seq": value}
    if choice == 2:
        return "readEvent", {**one, "seq": 1, rng.choice(("before", "after")): value}
    if choice == 3:
        return "readTitleSnapshots", {"sessionIds": [session, *rng.choices(TITLED, k=3)]}
    if choice == 4:
        name = rng.choice(("limit", "cursor", "query"))
        return "searchSessions", {"query": "newt", name: value}
    if choice == 5:
        name = rng.choice(("limit", "cursor", "query", "sessionId"))
        return "searchEvents", {**one, "query": "newt", name: value}
    if choice == 6:
        clauses = [_odd_clause(rng) for _ in range(rng.choice((1, 1, 2, 15)))]
        name = rng.choice(("sessionFilters", "eventFilters"))
        return "searchSessions", {"query": "newt", name: clauses}
    operation = rng.choice(("filterEvents", "filterSessions"))
    return operation, {**one, "filters": [_odd_clause(rng) for _ in range(2)]}


def _odd_clause(rng: random.Random) -> Request:
    kinds = ("id", "cwd", "parent", "created-at", "availability", "seq", "time", "type", "surface")
    clause: Request = {"kind": rng.choice((*kinds, "text", "ID"))}
    if rng.random() < 0.6:
        values = ("live", "persisted", "current", "user/message", None, 5, "s0")
        clause["values"] = rng.choices(values, k=rng.randint(0, 2))
    for name in ("from", "to", "text"):
        if rng.random() < 0.3:
            clause[name] = rng.choice(ODD)
    return clause


def _search_sessions(rng: random.Random, ids: list[str]) -> Request:
    arguments: Request = {"query": _query(rng), **_limit(rng)}
    if rng.random() < 0.3:
        filters = [_session_filter(rng, ids) for _ in range(rng.randint(0, 2))]
        arguments["sessionFilters"] = filters
    if rng.random() < 0.3:
        arguments["eventFilters"] = [_event_filter(rng) for _ in range(rng.randint(0, 2))]
    return arguments


def _limit(rng: random.Random) -> Request:
    return {} if rng.random() < 0.4 else {"limit": rng.choice((1, 1, 2, 3, 100, 0, None))}


def _query(rng: random.Random) -> str:
    if rng.random() < 0.03:
        return rng.choice(("", "   ", "\u0000", "---"))
    if rng.random() < 0.5:
        return rng.choice(WORDS)
    if rng.random() < 0.3:
        return rng.choice(("interrupted", "tool error", "TOOL_FAILED", "aborted", "newt newt"))
    return text(rng, 1) + rng.choice(BLANKS) + rng.choice(WORDS)


def _session_filter(rng: random.Random, ids: list[str]) -> Request:
    kind = rng.choice(("id", "cwd", "parent", "created-at", "availability"))
    if kind == "id":
        return {"kind": kind, "values": rng.sample(ids, min(len(ids), 3))}
    if kind == "cwd":
        return {"kind": kind, "values": [rng.choice(CWDS) for _ in range(2)]}
    if kind == "parent":
        return {"kind": kind, "values": [rng.choice([*ids, None]) for _ in range(2)]}
    if kind == "availability":
        return {
            "kind": kind,
            "values": rng.choice((["live"], ["persisted"], ["live", "persisted"])),
        }
    return _range(rng, kind)


def _event_filter(rng: random.Random, *, literal: bool = False) -> Request:
    kinds = ("seq", "time", "type", "surface", *(("text", "text") if literal else ()))
    kind = rng.choice(kinds)
    if kind == "type":
        return {"kind": kind, "values": rng.sample(TYPES, rng.randint(0, 3))}
    if kind == "surface":
        return {"kind": kind, "values": rng.sample(SURFACES, rng.randint(1, 2))}
    if kind == "text":
        word = rng.choice(WORDS)
        return {"kind": kind, "text": rng.choice((word, word.lower(), word.upper(), text(rng, 1)))}
    if kind == "seq":
        low = rng.randint(0, 20)
        return {"kind": kind, "from": low, "to": low + rng.randint(0, 20)}
    return _range(rng, kind)


def _range(rng: random.Random, kind: str) -> Request:
    low = T0 + rng.choice((-1, 0, 1000, 3000))
    made: Request = {"kind": kind}
    if rng.random() < 0.8:
        made["from"] = low
    if rng.random() < 0.6:
        made["to"] = low + rng.choice((0, 2000, 10**7))
    return made

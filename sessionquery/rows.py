"""Event rows: the known types, the envelope, and packed source lists."""

from __future__ import annotations

from itertools import pairwise
from math import copysign
from typing import Any, Final

from sessionquery.jstext import MAX_SAFE_INTEGER, is_count, is_js_integer

SURFACE_TYPES: Final = frozenset(
    ("system/message", "developer/message", "user/message", "assistant/message", "tool/result")
)

KNOWN_TYPES: Final = SURFACE_TYPES | frozenset(
    (
        "agent-preset/selected",
        "agent/inbox/spliced",
        "approval/asked",
        "approval/decided",
        "approval/policy",
        "assistant/attempt",
        "command/done",
        "command/run",
        "compaction/end",
        "compaction/prune",
        "compaction/start",
        "compaction/summary",
        "deliverables/presented",
        "feedback/message-delete",
        "feedback/message-put",
        "feedback/record",
        "goal/change",
        "hook/invoked",
        "hook/result",
        "image/offload",
        "job/registered",
        "job/settled",
        "llm/retry",
        "llm/retry-started",
        "model/selection",
        "permission/preset",
        "plan/mode",
        "request/context",
        "request/header",
        "sandbox/mode",
        "schedule/change",
        "session-log-deepseek/delivery-accepted",
        "session/end-seed",
        "session/title",
        "session/title-llm-request",
        "step/end",
        "step/start",
        "subagent/catalog",
        "subagent/descriptor",
        "subagent/model-selection-policy",
        "team/member",
        "team/message/delivered",
        "team/message/queued",
        "team/task",
        "todo/write",
        "tool-workflow/agent-end",
        "tool-workflow/agent-start",
        "tool-workflow/run-end",
        "tool-workflow/run-start",
        "tool/call",
        "tool/ptc-dispatch",
        "tool/ptc-dispatch-start",
        "turn/end",
        "turn/start",
        "web/deepseek-search-llm-request",
        "working-directory/change",
        "workspace/changes",
    )
)

_OPTIONAL_KEYS: Final = frozenset(("surfaceOp", "sourceEventSeqs", "ignorable"))


def unpack_sources(packed: Any, seq: int) -> list[int] | None:
    """Unpack ``[1,[4,9],12]``; None if it is no list of distinct numbers below `seq`.

    A list with ranges must ascend, one without may have any order.
    """
    if not isinstance(packed, list):
        return None
    out: list[int] = []
    ranges = False
    for entry in packed:
        if isinstance(entry, list):
            if len(entry) != 2 or not is_count(entry[0]) or not is_count(entry[1]):
                return None
            first, last = int(entry[0]), int(entry[1])
            if first > last or last >= seq:
                return None
            out.extend(range(first, last + 1))
            ranges = True
        elif is_count(entry) and entry < seq:
            out.append(int(entry))
        else:
            return None
    if ranges and any(later <= earlier for earlier, later in pairwise(out)):
        return None
    return out if len(set(out)) == len(out) else None


def normalize_row(row: Any, seq: int) -> bool:
    """Check the envelope of a row that should be event number `seq`, and normalize it in place.

    Numbers such as ``4.0`` become integers and ``sourceEventSeqs`` is unpacked. Payloads are not
    looked at.

    Returns:
        False if the row is broken (document: "broken row").
    """
    if row.__class__ is not dict:
        return False
    try:
        kind, number, time = row["type"], row["seq"], row["time"]
        size = len(row)
        row["data"]
    except KeyError:
        return False
    if kind.__class__ is not str:
        return False
    if number.__class__ is not int:
        if not is_js_integer(number):
            return False
        row["seq"] = number = int(number)
    if number != seq:
        return False
    if time.__class__ is not int:
        if not is_js_integer(time) or (time == 0 and copysign(1.0, time) < 0):
            return False
        row["time"] = time = int(time)
    if not -MAX_SAFE_INTEGER <= time <= MAX_SAFE_INTEGER:
        return False
    if kind == "session/end-seed" and row["data"].__class__ is not dict:
        return False
    if size == 4:
        return True
    for key in row:
        if key not in ("type", "seq", "time", "data") and key not in _OPTIONAL_KEYS:
            return False
    if "ignorable" in row and row["ignorable"] is not True:
        return False
    if "sourceEventSeqs" in row:
        sources = unpack_sources(row["sourceEventSeqs"], seq)
        if sources is None:
            return False
        row["sourceEventSeqs"] = sources
    return True

"""The header line of a log: a session, silently absent, or the end of the whole store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dsh_memory.sessionquery.disk.names import CURRENT_GENERATION
from dsh_memory.sessionquery.js.json import JsonError, parse_json
from dsh_memory.sessionquery.js.text import is_count
from dsh_memory.sessionquery.model.sessions import SessionHeader

ProblemKind = Literal["absent", "corrupt", "newer", "fatal"]
FormatStatus = Literal["current", "migration-required"]

_RETIRED_KEYS: Final = ("sandboxMode", "approvalPolicy")
_REQUIRED: Final = {"type", "version", "id", "createdAt", "isSeeded", "delegationDepth"}
_OPTIONAL: Final = {"cwd", "parentSession", "origin", "agentPreset"}
_LEGACY_REQUIRED: Final = {"type", "version", "id", "createdAt", "delegationDepth"}
_LEGACY_OPTIONAL: Final = {"cwd", "parentSession", "seedLength", "origin", "agentPreset"}


@dataclass(frozen=True, slots=True)
class HeaderProblem:
    """Why a log has no usable header, and what follows from it.

    Attributes:
        kind: ``absent``: not listed, not found. ``corrupt``: the same, but observing it by its
            directory reports corruption. ``newer``: written by a newer DSH; hidden, observing it
            fails. ``fatal``: every operation over the store fails.
        reason: What is wrong, without the path.
    """

    kind: ProblemKind
    reason: str


def format_status_of(generation: int) -> FormatStatus:
    """Tell whether logs of a generation are migrated when they are read."""
    return "current" if generation >= CURRENT_GENERATION else "migration-required"


def parse_header(line: bytes | None, generation: int) -> SessionHeader | HeaderProblem:
    """Interpret the header line of a log whose file name says `generation`.

    Args:
        line: The first line with or without its newline, None if it is not complete.
        generation: From the file name.
    """
    if line is None:
        return HeaderProblem("absent", "the header line is missing or incomplete")
    try:
        row = parse_json(line)
    except JsonError as error:
        return HeaderProblem("absent", f"the header line is not JSON ({error})")
    if isinstance(row, dict) and any(key in row for key in _RETIRED_KEYS):
        return HeaderProblem("fatal", "the header has retired policy fields")
    newer = generation > CURRENT_GENERATION
    if not isinstance(row, dict) or (row.get("type") != "session" and not newer):
        return HeaderProblem("absent", "the first line is not a session header")
    version = row.get("version")
    if not is_count(version):
        return HeaderProblem("absent", f"the header has no usable version ({version!r})")
    if version != generation:
        return HeaderProblem(
            "fatal",
            f"the file name says generation {generation}, the header version {version}",
        )
    if newer:
        return HeaderProblem(
            "newer",
            f"the log has format {generation}, this program reads up to {CURRENT_GENERATION}; "
            "update dsh-memory to read it",
        )
    return header_from_row(row, generation)


def header_from_row(row: Mapping[str, Any], generation: int) -> SessionHeader | HeaderProblem:
    """Check the keys and values of a header and bring it into generation-4 form."""
    legacy = generation <= 1
    required = _LEGACY_REQUIRED if legacy else _REQUIRED
    optional = _LEGACY_OPTIONAL if legacy else _OPTIONAL
    keys = set(row)
    if missing := required - keys:
        return _malformed(f"lacks {', '.join(sorted(missing))}")
    if extra := keys - required - optional:
        return _malformed(f"has unknown keys {', '.join(map(repr, sorted(extra)))}")
    if not isinstance(row["id"], str):
        return _malformed("has an id that is not text")
    created, depth = row["createdAt"], row["delegationDepth"]
    if not is_count(created):
        return _malformed(f"has an unusable createdAt ({created!r})")
    if not is_count(depth):
        return _malformed(f"has an unusable delegationDepth ({depth!r})")
    if legacy:
        seeded = "seedLength" in row
        if seeded and not is_count(row["seedLength"]):
            return _malformed(f"has an unusable seedLength ({row['seedLength']!r})")
    elif row["isSeeded"].__class__ is not bool:
        return _malformed("has an isSeeded that is neither true nor false")
    else:
        seeded = row["isSeeded"]
    for key in ("cwd", "parentSession", "agentPreset"):
        if key in row and not isinstance(row[key], str):
            return _malformed(f"has a {key} that is not text")
    if "origin" in row and row["origin"] != "subagent":
        return _malformed(f"has an unknown origin ({row['origin']!r})")
    cwd = row.get("cwd")
    if cwd is not None and not cwd.startswith("/"):
        return _malformed(f"has a cwd that is not absolute ({cwd!r})")
    preset = row.get("agentPreset")
    if generation <= 2 and preset == "code":
        preset = "ptc"
    return SessionHeader(
        id=row["id"],
        created_at=int(created),
        is_seeded=seeded,
        delegation_depth=int(depth),
        cwd=cwd,
        parent_session=row.get("parentSession"),
        origin=row.get("origin"),
        agent_preset=preset,
    )


def _malformed(what: str) -> HeaderProblem:
    return HeaderProblem("absent", f"the header {what}")

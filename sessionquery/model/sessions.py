"""Sessions, their headers and events: frozen records, in the original's terms in snake_case.

Times are integers, milliseconds since the Unix epoch. `seq` is the zero-based event number in a
session. Absent optional values are None here and left out of the JSON form (`model.wire`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Surface = Literal["current", "shadowed", "log-only"]
Event = dict[str, Any]
"""One log event as JSON: ``type, seq, time, data`` and optionally ``surfaceOp, sourceEventSeqs
(unpacked), ignorable``."""


LOG_ONLY, CURRENT, SHADOWED = 0, 1, 2
"""Codes of an event's surface, where one byte an event is kept."""
SURFACE_NAMES: tuple[Surface, Surface, Surface] = ("log-only", "current", "shadowed")
"""Names of the codes in `ScannedLog.surfaces`."""


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """The immutable first line of a session log, always in generation-4 form.

    `delegation_depth` is None only for live sessions that an embedding program made without one.
    """

    id: str
    created_at: int
    is_seeded: bool
    delegation_depth: int | None
    cwd: str | None = None
    parent_session: str | None = None
    origin: str | None = None
    agent_preset: str | None = None
    version: int = 4

    @property
    def is_main(self) -> bool:
        """Whether this is a main session (document 000), neither spawned nor forked as subagent."""
        return self.origin != "subagent" and (self.delegation_depth or 0) <= 0


@dataclass(frozen=True, slots=True)
class SessionRecord:
    header: SessionHeader
    live: bool
    persisted: bool
    format_status: Literal["current", "migration-required"] = "current"

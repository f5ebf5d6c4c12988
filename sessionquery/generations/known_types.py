"""The event types that generation 3 knows; all others must be marked ignorable there."""

from __future__ import annotations

from typing import Final

from dsh_memory.sessionquery.generations.admission import ADMITTED
from dsh_memory.sessionquery.model.event_types import SURFACE_TYPES

GENERATION_3: Final = (
    frozenset(ADMITTED[2]) - {"tool/code-dispatch", "tool/code-dispatch-start"}
) | {
    "deliverables/presented",
    "image/offload",
    "subagent/catalog",
    "system/message",
    "tool/ptc-dispatch",
    "tool/ptc-dispatch-start",
    "workspace/changes",
}

LOG_ONLY_3: Final = GENERATION_3 - SURFACE_TYPES
"""Known types outside the surface: no `surfaceOp`, no `sourceEventSeqs`."""

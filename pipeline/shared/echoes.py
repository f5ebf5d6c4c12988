"""Recognizing our own earlier answers in the history.

DSH records what our tools are asked and return as ``tool/call`` and ``tool/result`` events, and
later searches find them again. Mounted over MCP the tools carry the recorded name
``mcp__<server>__<tool>``, where the user chooses the server's name.
"""

from __future__ import annotations

import re
from typing import Final

from dsh_memory.sessionquery.model.search import EventHit

TOOL_NAMES: Final = (
    "recall_memory",
    "review_jev_filtered",
    "fetch_session",
    "recall",
    "session_search",
    "session_event_search",
    "session_trace",
    "session_event_trace",
    "session_event_read",
)
"""Every tool that this program offers, whatever the set."""

_OURS = re.compile(f"mcp__.+__(?:{'|'.join(TOOL_NAMES)})", re.DOTALL)


def is_own_tool(recorded_name: str) -> bool:
    """Whether a recorded tool name is one of our tools on any server."""
    return _OURS.fullmatch(recorded_name) is not None


def is_echo(hit: EventHit) -> bool:
    """Whether `hit` is nothing but calls or results of our own tools."""
    return bool(hit.tools) and all(is_own_tool(name) for name in hit.tools)

"""Exit statuses of the command line: one table, by error code."""

from __future__ import annotations

import signal

from dsh_memory.runtime.errors import DshMemoryError

INTERRUPTED = 128 + signal.SIGINT
BROKEN_PIPE = 141
UNEXPECTED = 1

_USAGE = {
    "SESSION_QUERY_INVALID_QUERY",
    "SESSION_QUERY_INVALID_LIMIT",
    "SESSION_QUERY_INVALID_FILTER",
    "SESSION_QUERY_INVALID_WINDOW",
}
_CURSOR = {"SESSION_QUERY_STALE_CURSOR", "SESSION_QUERY_INVALID_CURSOR"}
_FAMILIES = {"REQUEST_": 2, "CONFIG_": 2, "JEV_": 4, "OLLAMA_": 4, "OBSIDIAN_": 5}


def exit_status(error: DshMemoryError) -> int:
    """Return 1 to 5 for `error`.

    1: ``SESSION_QUERY_*`` not named below and anything unexpected; 2: requests, options and
    configuration; 3: stale or invalid cursor; 4: the model side; 5: the note.
    """
    if error.code in _USAGE:
        return 2
    if error.code in _CURSOR:
        return 3
    for family, status in _FAMILIES.items():
        if error.code.startswith(family):
            return status
    return UNEXPECTED

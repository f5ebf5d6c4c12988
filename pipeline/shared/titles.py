"""Titles as an extra: what cannot be read in time stays untitled, and never fails a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
from dsh_memory.pipeline.shared.engine_port import HistoryEngine
from dsh_memory.sessionquery.errors import SessionQueryError

TITLE_SECONDS: Final = 3.0
"""A title is somewhere in the log, so that reading many of them costs time."""
_BATCH: Final = 8
"""So many at a time, so that those which were read before the time is over are kept."""


async def read_titles(
    engine: HistoryEngine, session_ids: Sequence[str], *, seconds: float = TITLE_SECONDS
) -> dict[str, str]:
    """Return the titles of those sessions that have one which could be read within `seconds`."""
    titles: dict[str, str] = {}
    wanted = list(dict.fromkeys(session_ids))
    with anyio.move_on_after(seconds):
        for start in range(0, len(wanted), _BATCH):
            try:
                results = await engine.read_titles(wanted[start : start + _BATCH])
            except SessionQueryError:
                break  # a title is an extra; the reads that matter report the same failure
            for result in results:
                found = None if result.value is None else result.value.title
                if found is not None and found.title is not None:
                    titles[result.session_id] = found.title
    return titles

"""Recorded times as text, the same in every rendering."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def moment(milliseconds: int) -> str:
    """Return a time (ms since the epoch) in UTC with seconds; one beyond any calendar stays ms."""
    try:
        return (EPOCH + timedelta(milliseconds=milliseconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return f"{milliseconds} ms"

"""Rows of old logs."""

from __future__ import annotations

from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
"""One decoded log row: ``type, seq, time, data`` and optionally ``surfaceOp, sourceEventSeqs,
ignorable``; a packed chunk row has ``seq0, time0`` instead of ``seq, time``."""

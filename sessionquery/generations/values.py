"""Rows of old logs, and closed key sets as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

Row: TypeAlias = dict[str, Any]
"""One decoded log row: ``type, seq, time, data`` and optionally ``surfaceOp, sourceEventSeqs,
ignorable``; a packed chunk row has ``seq0, time0`` instead of ``seq, time``."""


def is_name(value: object) -> bool:
    """Whether `value` is a string that is not empty."""
    return type(value) is str and value != ""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that an object must have (`required`) and may have (`allowed`, a superset)."""

    required: frozenset[str]
    allowed: frozenset[str]

    def fit(self, value: object) -> TypeGuard[dict[str, Any]]:
        """Whether `value` is an object with every required and no unknown key."""
        if type(value) is not dict:
            return False
        present = value.keys()
        return present <= self.allowed and self.required <= present


def keys(table: str) -> Keys:
    """Read ``"required keys | optional keys"`` (blank separated)."""
    required, _, optional = table.partition("|")
    needed = frozenset(required.split())
    return Keys(needed, needed | frozenset(optional.split()))

"""Text that every Unicode format can carry: no lone surrogates."""

from __future__ import annotations

import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """Join surrogate pairs that arrived as two characters; turn each lone one into U+FFFD."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def well_formed_json(value: Any) -> Any:
    """Apply `well_formed` to every string of a JSON value, keys included."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed(str(key)): well_formed_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [well_formed_json(item) for item in value]
    return value

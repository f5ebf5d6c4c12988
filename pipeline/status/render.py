"""Status as text: sections of ``name: value`` lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def render_status(status: Mapping[str, Any]) -> str:
    """Return a status value (`pipeline.status.collect.collect_status`) as indented plain text."""
    return "\n".join(_lines(status, ""))


def _lines(value: Mapping[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for name, item in value.items():
        label = f"{indent}{name if '.' in name else name.replace('_', ' ')}:"
        if isinstance(item, Mapping) and item.keys() == {"value", "from"}:
            lines.append(f"{label} {_plain(item['value'])} ({item['from']})")
        elif isinstance(item, Mapping):
            lines += [label, *_lines(item, indent + "  ")]
        elif isinstance(item, (list, tuple)):
            lines += [label, *(f"{indent}  - {_plain(part)}" for part in item)]
        else:
            lines.append(f"{label} {_plain(item)}")
    return lines


def _plain(value: object) -> str:
    if value is None:
        return "(unset)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(item)}" for name, item in value.items())
    return str(value)

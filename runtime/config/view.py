"""The configuration as people and programs look at it: one row a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dsh_memory.runtime.config.keys import key_info, keys
from dsh_memory.runtime.config.layers import LoadedConfig
from dsh_memory.runtime.config.settings import Settings

Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One key with its effective value and the layer that it comes from.

    Attributes:
        value: The effective value; None for an optional key that is unset.
        layer: ``default``, ``site``, ``user``, ``environment`` or ``command-line``.
        source: The file, variable or option of that layer; None for a default.
    """

    key: str
    value: Value
    layer: str
    source: str | None
    default: Value

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON; `source` is absent for a default."""
        row: dict[str, Any] = {
            "key": self.key,
            "value": self.value,
            "layer": self.layer,
            "default": self.default,
        }
        if self.source is not None:
            row["source"] = self.source
        return row


def rows(loaded: LoadedConfig) -> tuple[ConfigRow, ...]:
    """Return every key in the order of the documentation."""
    return tuple(row(loaded, key) for key in keys())


def row(loaded: LoadedConfig, key: str) -> ConfigRow:
    """Return one key.

    Raises:
        ConfigError: ``CONFIG_UNKNOWN_KEY``.
    """
    info = key_info(key, source="config get")
    return ConfigRow(
        key=key,
        value=value_of(loaded.settings, key),
        layer=loaded.provenance[key],
        source=loaded.sources.get(key),
        default=info.default,
    )


def value_of(settings: Settings, key: str) -> Value:
    """Return the effective value of a known key."""
    section, _, field = key.partition(".")
    value: Value = getattr(getattr(settings, section), field)
    return value


def show(loaded: LoadedConfig) -> dict[str, Any]:
    """Return everything that ``config show`` prints, as JSON."""
    return {
        "user_file": str(loaded.user_path),
        "revision": loaded.revision,
        "site_file": str(loaded.site_path),
        "settings": [item.to_json() for item in rows(loaded)],
    }

"""The table of configuration keys, derived from the settings model.

The command line, the environment layer, the configuration page and ``docs/configuration.md`` all
read this table, so a key exists in exactly one place: its field in `runtime.config.settings`.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from dsh_memory.runtime.config.settings import SECTIONS
from dsh_memory.runtime.errors import ConfigError

Kind = Literal["boolean", "integer", "number", "text", "choice"]

ENVIRONMENT_PREFIX = "DSH_MEMORY_"


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """One configuration key.

    Attributes:
        name: ``section.field``.
        kind: The type of its value; ``choice`` is one text out of `choices`.
        default: The package default; None for an optional key that is unset.
        minimum: Smallest allowed number (`exclusive_minimum` says whether itself is refused).
        maximum: Largest allowed number.
        meaning: One or two sentences in plain words.
    """

    name: str
    kind: Kind
    default: bool | int | float | str | None
    choices: tuple[str, ...]
    minimum: int | float | None
    exclusive_minimum: bool
    maximum: int | float | None
    meaning: str

    @property
    def environment(self) -> str:
        """The environment variable that sets it."""
        return ENVIRONMENT_PREFIX + self.name.replace(".", "__").upper()

    @property
    def type_text(self) -> str:
        """The type in words, bounds included."""
        if self.kind == "choice":
            return " \\| ".join(f"`{choice}`" for choice in self.choices)
        if self.minimum is None or self.maximum is None:
            return self.kind
        if self.exclusive_minimum:
            return f"{self.kind}, above {self.minimum} to {self.maximum}"
        return f"{self.kind}, {self.minimum} to {self.maximum}"


@functools.cache
def keys() -> dict[str, KeyInfo]:
    """Return every key by its name, in the order of the settings model."""
    table: dict[str, KeyInfo] = {}
    for section, model in SECTIONS.items():
        for field, info in model.model_fields.items():
            kind, choices = _kind(info.annotation)
            minimum, exclusive, maximum = _bounds(info.metadata, info.annotation)
            name = f"{section}.{field}"
            table[name] = KeyInfo(
                name=name,
                kind=kind,
                default=info.default,
                choices=choices,
                minimum=minimum,
                exclusive_minimum=exclusive,
                maximum=maximum,
                meaning=info.description or "",
            )
    return table


def key_info(name: str, *, source: str) -> KeyInfo:
    """Return the entry of a key.

    Raises:
        ConfigError: ``CONFIG_UNKNOWN_KEY``, naming `source` and close names.
    """
    info = keys().get(name)
    if info is None:
        raise unknown_key(name, source=source)
    return info


def unknown_key(name: str, *, source: str) -> ConfigError:
    """Return the error for a name that is no key."""
    import difflib

    close = difflib.get_close_matches(name.lower(), keys(), n=3, cutoff=0.5)
    hint = (
        f"Did you mean {' or '.join(close)}?"
        if close
        else "dsh-memory config show lists every key."
    )
    return ConfigError(
        f'{source}: "{_clip(name)}" is no configuration key.',
        code="CONFIG_UNKNOWN_KEY",
        hint=hint,
        key=name,
    )


def parse_text(info: KeyInfo, text: str, *, source: str) -> bool | int | float | str:
    """Read a value of the key's type from the text of an option or an environment variable.

    Only the form is judged here; bounds and rules are the settings model's.

    Raises:
        ConfigError: ``CONFIG_INVALID`` naming source, key and text.
    """
    if info.kind == "boolean":
        if text in ("true", "false"):
            return text == "true"
        wanted = "true or false"
    elif info.kind == "integer":
        if re.fullmatch(r"[+-]?[0-9]{1,18}(\.0{1,18})?", text):  # 8192.0 is whole, as in a file
            return int(text.partition(".")[0])
        wanted = "a whole number"
    elif info.kind == "number":
        if re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?", text):
            return float(text)
        wanted = "a number"
    else:
        return text
    raise ConfigError(
        f'{source}: {info.name} must be {wanted}, not "{_clip(text)}".',
        code="CONFIG_INVALID",
        hint=f"{info.name}: {info.meaning}",
        key=info.name,
    )


def markdown_table() -> str:
    """Return the table of ``docs/configuration.md``: key, type, default, meaning."""
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for info in keys().values():
        default = "unset" if info.default is None else f"`{_toml_text(info.default)}`"
        lines.append(f"| `{info.name}` | {info.type_text} | {default} | {info.meaning} |")
    return "\n".join(lines) + "\n"


def _toml_text(value: bool | int | float | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _kind(annotation: Any) -> tuple[Kind, tuple[str, ...]]:
    """Translate a field's annotation; an optional type counts as the type itself."""
    if get_origin(annotation) is Literal:
        return "choice", tuple(str(choice) for choice in get_args(annotation))
    if isinstance(annotation, types.UnionType) or get_origin(annotation) is not None:
        members = [part for part in get_args(annotation) if part is not type(None)]
        return _kind(members[0])
    simple: dict[Any, Kind] = {bool: "boolean", int: "integer", float: "number", str: "text"}
    return simple[annotation], ()


def _bounds(
    metadata: Iterable[Any], annotation: Any
) -> tuple[int | float | None, bool, int | float | None]:
    """Collect the bounds of a number, also where they lie inside an optional type."""
    minimum: int | float | None = None
    maximum: int | float | None = None
    exclusive = False
    pending = [*metadata, *get_args(annotation)]
    while pending:
        rule = pending.pop()
        pending.extend(getattr(rule, "metadata", ()))
        pending.extend(getattr(rule, "__metadata__", ()))
        if hasattr(rule, "gt"):
            minimum, exclusive = rule.gt, True
        minimum = getattr(rule, "ge", minimum)
        maximum = getattr(rule, "le", maximum)
    return minimum, exclusive, maximum


def _clip(text: str) -> str:
    shown = text if text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= 80 else shown[:79] + "…"


if __name__ == "__main__":
    print(markdown_table(), end="")

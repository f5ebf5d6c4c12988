"""The page's view of the configuration: every field with its value, layer, default and rules.

Nothing here knows a rule: types, bounds and choices are the settings model's JSON Schema, and
values are judged by `runtime.config.edit`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from dsh_memory.runtime.config.edit import UNSET, apply_changes, find_problems
from dsh_memory.runtime.config.keys import KeyInfo, keys
from dsh_memory.runtime.config.layers import (
    ConfigDocument,
    LoadedConfig,
    load,
    parse,
    read_bytes,
    read_document,
    revision_of,
)
from dsh_memory.runtime.config.paths import site_config_file, user_config_file
from dsh_memory.runtime.config.settings import settings_json_schema
from dsh_memory.runtime.config.view import value_of
from dsh_memory.runtime.errors import ConfigError
from pydantic import BaseModel, ConfigDict, Field

GROUPS: Mapping[str, tuple[str, ...]] = {
    "store": ("store", "index", "search"),
    "jev": ("jev",),
    "obsidian": ("obsidian",),
    "recall": ("recall",),
}
"""Group of the page -> sections of the settings model, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the page reads and writes: what the command line named.

    Attributes:
        config_path: The file to edit; None for the user's own.
        overrides: ``KEY=VALUE`` texts of the command line, which win over the file.
    """

    config_path: Path | None = None
    overrides: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file that Save writes."""
        return self.config_path if self.config_path is not None else user_config_file()

    def load(self) -> LoadedConfig:
        """Load the layered configuration; see `runtime.config.layers.load`."""
        return load(config_path=self.config_path, overrides=self.overrides)


class Operation(BaseModel):
    """One change of the draft: a new value for a key, or the removal of the user's own."""

    model_config = ConfigDict(extra="forbid", strict=True)

    op: Literal["set", "unset"]
    key: str = Field(max_length=200)
    value: bool | int | float | str | None = None


class Draft(BaseModel):
    """The unsaved changes, with the revision of the file that they were made on."""

    model_config = ConfigDict(extra="forbid", strict=True)

    revision: str = Field(max_length=100)
    operations: list[Operation] = Field(max_length=500)

    def changes(self) -> dict[str, object]:
        """Return key -> value or `UNSET`, as `runtime.config.edit` takes them."""
        return {item.key: UNSET if item.op == "unset" else item.value for item in self.operations}


def read_form(source: Source) -> dict[str, Any]:
    """Return everything that the page shows, read at one moment.

    An unusable file does not fail: the form then carries the ``problem`` and what could be read.
    Its ``revision`` is that of the bytes that the fields come from, so a change between two reads
    can only end in a conflict at Save, never in an overwrite.
    """
    path = source.path
    problem: ConfigError | None = None
    own: dict[str, Any] = {}
    stray: tuple[str, ...] = ()
    revision = ""
    try:
        content = read_bytes(path)
        revision = revision_of(content)
        if content is not None:
            own, stray = _own_values(parse(content, path))
    except ConfigError as error:
        problem = error
    loaded: LoadedConfig | None = None
    try:
        loaded = source.load()
    except ConfigError as error:
        problem = problem or error
    site = _site_values()
    schemas = field_schemas()
    fields = {
        key: _field(info, own=own, site=site, loaded=loaded, schema=schemas[key])
        for key, info in keys().items()
    }
    return {
        "version": version("dsh-memory"),
        "revision": revision,
        "file": {"path": str(path), "exists": bool(revision) and revision != "absent"},
        "config_option": None if source.config_path is None else str(source.config_path),
        "lock": write_obstacle(path) if revision else "unreadable",
        "problem": None if problem is None else error_json(problem),
        "stray": list(stray),
        "groups": [
            {
                "id": group,
                "fields": [key for key in fields if key.partition(".")[0] in sections],
            }
            for group, sections in GROUPS.items()
        ],
        "fields": fields,
    }


def find_draft_problems(source: Source, draft: Draft) -> dict[str, Any]:
    """Judge a draft without writing: key -> error; ``""`` stands for the file as a whole."""
    found = find_problems(source.path, draft.changes())
    return {key: error_json(error) for key, error in found.items()}


def save_draft(source: Source, draft: Draft) -> None:
    """Write the draft in one fenced step.

    Raises:
        ConfigError: As `runtime.config.edit.apply_changes`; nothing is written then.
    """
    apply_changes(source.path, draft.changes(), expected_revision=draft.revision)


def current_revision(source: Source) -> str:
    """Return the revision of the file as it is now; empty when it cannot be read."""
    try:
        return revision_of(read_bytes(source.path))
    except ConfigError:
        return ""


def values_after(source: Source, draft: Draft) -> dict[str, Any]:
    """Return key -> the value that would be in effect once the draft were saved, unjudged.

    Environment and command line keep winning over the file, as they do at every load.
    """
    changes = draft.changes()
    result: dict[str, Any] = {}
    for key, field in read_form(source)["fields"].items():
        effective = field["in_effect"]
        if effective is not None and effective["layer"] in ("environment", "command-line"):
            result[key] = effective["value"]
        elif key in changes and changes[key] is not UNSET:
            result[key] = changes[key]
        elif key in changes:
            result[key] = field["inherited"]
        else:
            result[key] = field.get("own", field["inherited"])
    return result


def error_json(error: ConfigError) -> dict[str, Any]:
    """Return an error for the page: also its key, and the bare reason for use beside the field."""
    reason = error.reason or error.message
    return {
        **error.to_json(),
        "key": error.key,
        "reason": reason[:1].upper() + reason[1:],
    }


def field_schemas() -> dict[str, dict[str, Any]]:
    """Return key -> JSON Schema of its value, with ``nullable`` for an optional one."""
    schema = settings_json_schema()
    definitions = schema["$defs"]
    result: dict[str, dict[str, Any]] = {}
    for section, reference in schema["properties"].items():
        target = reference.get("$ref") or reference["allOf"][0]["$ref"]
        for name, rules in definitions[target.rpartition("/")[2]]["properties"].items():
            flat = {key: value for key, value in rules.items() if key != "anyOf"}
            options = rules.get("anyOf", [])
            for option in options:
                if option.get("type") != "null":
                    flat.update(option)
            flat["nullable"] = any(option.get("type") == "null" for option in options)
            result[f"{section}.{name}"] = flat
    return result


def write_obstacle(path: Path) -> str | None:
    """Say why Save could not write, without trying: None, ``read-only`` or ``no-permission``.

    Only looked at, so a Save can still fail and then says why itself. A file without any write
    permission counts as read-only for root too, as it does for the writer.
    """
    target = Path(os.path.realpath(path))
    existing = target.parent
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    for place in (existing, target):
        try:
            flags = os.statvfs(place).f_flag
        except OSError:
            continue
        if flags & os.ST_RDONLY:
            return "read-only"
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return "no-permission"
    if target.exists() and (not target.stat().st_mode & 0o222 or not os.access(target, os.W_OK)):
        return "read-only"
    return None


def _own_values(document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Split a parsed file into the values of known keys and the names of unknown ones."""
    own: dict[str, Any] = {}
    stray: list[str] = []
    known = keys()
    sections = {name.partition(".")[0] for name in known}
    for section, content in document.items():
        if section not in sections or not isinstance(content, dict):
            stray.append(section)
            continue
        for name, value in content.items():
            key = f"{section}.{name}"
            if key in known:
                own[key] = value
            else:
                stray.append(key)
    return own, tuple(stray)


def _site_values() -> Mapping[str, Any]:
    try:
        return read_document(site_config_file()).values
    except ConfigError:  # told by `load`, as the form's problem
        return ConfigDocument(site_config_file(), "", {}).values


def _field(
    info: KeyInfo,
    *,
    own: Mapping[str, Any],
    site: Mapping[str, Any],
    loaded: LoadedConfig | None,
    schema: Mapping[str, Any],
) -> dict[str, Any]:
    key = info.name
    field: dict[str, Any] = {
        "schema": schema,
        "environment": info.environment,
        "default": info.default,
        "inherited": _plain(site.get(key, info.default)),
        "inherited_layer": "site" if key in site else "default",
        "in_effect": None,
    }
    if key in own:
        field["own"] = _plain(own[key])
    if loaded is not None:
        field["in_effect"] = {
            "value": value_of(loaded.settings, key),
            "layer": loaded.provenance[key],
        }
    return field


def _plain(value: object) -> bool | int | float | str | None:
    """Return a value of the file for a JSON answer; TOML's other types as text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return str(value)

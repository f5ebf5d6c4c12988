"""Reading the configuration: five layers, one strict model, and where each value comes from.

Layers, weakest first: package defaults, the site file, the user file, the environment
(``DSH_MEMORY_JEV__BASE_URL``), the command line (``--set KEY=VALUE``). Every layer is judged on its
own, a wrong value is an error even where a stronger layer covers it. Nothing here writes.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dsh_memory.runtime.config.paths import site_config_file, user_config_file
from dsh_memory.runtime.config.settings import SECTIONS, Settings
from dsh_memory.runtime.errors import ConfigError
from pydantic import ValidationError

Layer = Literal["default", "site", "user", "environment", "command-line"]
ABSENT = "absent"
ENVIRONMENT_PREFIX = "DSH_MEMORY_"
# Secrets and switches that belong to no settings file.
NOT_SETTINGS = frozenset({"DSH_MEMORY_MCP_TOKEN", "DSH_MEMORY_TRACEBACK"})
_MAXIMUM_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The effective settings and how they came about.

    Attributes:
        provenance: Key -> the layer whose value is effective, for every key.
        sources: Key -> the file, variable or option of that layer; only for keys that are set.
        user_path: The user file, whether it exists or not.
        site_path: The site file, likewise.
        revision: SHA-256 of the user file as read, or ``absent``.
        site_revision: The same of the site file.
    """

    settings: Settings
    provenance: Mapping[str, Layer]
    sources: Mapping[str, str]
    user_path: Path
    site_path: Path
    revision: str
    site_revision: str


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """One configuration file as read: its revision and its values by key."""

    path: Path
    revision: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _LayerValues:
    layer: Layer
    values: Mapping[str, Any]
    sources: Mapping[str, str]


def load(
    *,
    config_path: Path | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    site_path: Path | None = None,
) -> LoadedConfig:
    """Read and validate all layers.

    Args:
        config_path: Read this file instead of the user file.
        overrides: ``KEY=VALUE`` texts of the command line, later ones win.
        environ: The environment to read; by default the process's own.
        site_path: Read this file instead of the site file.

    Raises:
        ConfigError: ``CONFIG_SYNTAX``, ``CONFIG_READ_FAILED``, ``CONFIG_UNKNOWN_KEY``,
            ``CONFIG_BASE_URL`` or ``CONFIG_INVALID``, naming the file (or variable, or option), the
            key and the value.
    """
    user = read_document(config_path if config_path is not None else user_config_file())
    site = read_document(site_path if site_path is not None else site_config_file())
    layers = (
        _file_layer("site", site),
        _file_layer("user", user),
        _environment_layer(os.environ if environ is None else environ),
        _command_line_layer(overrides),
    )
    return _merge(layers, user=user, site=site)


def validate_layers(*, site: ConfigDocument | None, user: ConfigDocument) -> LoadedConfig:
    """Judge the two files without environment and command line.

    This is what a writer asks before it saves: a file must be valid without the variables and
    options of the process that happens to write it.

    Args:
        site: The site file; None for none.
        user: The user file as read, or as it would be.

    Raises:
        ConfigError: As `load`.
    """
    below = site if site is not None else ConfigDocument(user.path, ABSENT, {})
    return _merge((_file_layer("site", below), _file_layer("user", user)), user=user, site=below)


def validate_value(key: str, value: object, *, source: str) -> None:
    """Judge one value of a known key by the rules of its field alone.

    Raises:
        ConfigError: As `load`, naming `source`.
    """
    _validate_each(_LayerValues("user", {key: value}, {key: source}))


def read_document(path: Path) -> ConfigDocument:
    """Read one TOML file into values by key; a missing file is empty with revision ``absent``.

    Raises:
        ConfigError: ``CONFIG_READ_FAILED``, ``CONFIG_SYNTAX`` or ``CONFIG_UNKNOWN_KEY``.
    """
    content = read_bytes(path)
    if content is None:
        return ConfigDocument(path, ABSENT, {})
    return ConfigDocument(path, revision_of(content), flatten(parse(content, path), str(path)))


def read_bytes(path: Path) -> bytes | None:
    """Return the bytes of a configuration file, or None when there is none.

    Raises:
        ConfigError: ``CONFIG_READ_FAILED`` when it exists but cannot be read.
    """
    try:
        # Non-blocking, so that a named pipe in the file's place is an error and no endless wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                raise ValueError("it is a named pipe")
            content = file.read(_MAXIMUM_BYTES + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(
            f"The configuration file {path} cannot be read: {reason}.",
            code="CONFIG_READ_FAILED",
            hint="Check the path and its permissions, or name another file with --config.",
        ) from error
    if len(content) > _MAXIMUM_BYTES:
        raise ConfigError(
            f"The configuration file {path} is larger than 1 MiB.", code="CONFIG_READ_FAILED"
        )
    return content


def revision_of(content: bytes | None) -> str:
    """Return the revision of a file's content: SHA-256 in hex, or ``absent`` for None."""
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()


def parse(content: bytes, path: Path) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ConfigError: ``CONFIG_SYNTAX`` with the parser's line and column.
    """
    import tomllib  # only here: most commands find no file to parse

    try:
        return tomllib.loads(content.decode("utf-8-sig"))  # some editors write a mark in front
    except (ValueError, RecursionError) as error:  # not only its own: an integer may be too long
        raise ConfigError(
            f"The configuration file {path} is no valid TOML: {error}.",
            code="CONFIG_SYNTAX",
            hint="Correct the line, or move the file away to start from the defaults.",
        ) from error


def flatten(document: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Turn ``{section: {field: value}}`` into ``{"section.field": value}``.

    Raises:
        ConfigError: ``CONFIG_UNKNOWN_KEY`` or, for a section that is no table, ``CONFIG_INVALID``.
    """
    values: dict[str, Any] = {}
    for section, content in document.items():
        model = SECTIONS.get(section)
        if model is None:
            raise _unknown(section, source)
        if not isinstance(content, dict):
            raise ConfigError(
                f"{source}: {section} must be a table of settings, not {_shown(content)}.",
                hint=f"Write [{section}] and its keys below.",
            )
        for field, value in content.items():
            if field not in model.model_fields:
                raise _unknown(f"{section}.{field}", source)
            values[f"{section}.{field}"] = value
    return values


def parse_override(text: str) -> tuple[str, Any]:
    """Read one ``KEY=VALUE`` of the command line into a key and a value of the key's type.

    Raises:
        ConfigError: ``CONFIG_INVALID`` or ``CONFIG_UNKNOWN_KEY``.
    """
    from dsh_memory.runtime.config.keys import key_info, parse_text

    key, separator, value = text.partition("=")
    if not separator:
        raise ConfigError(
            f"--set takes KEY=VALUE, not {_shown(text)}.",
            hint="For instance --set jev.enabled=true",
        )
    return key, parse_text(key_info(key, source="--set"), value, source="--set")


def _file_layer(layer: Layer, document: ConfigDocument) -> _LayerValues:
    return _LayerValues(layer, document.values, dict.fromkeys(document.values, str(document.path)))


def _environment_layer(environ: Mapping[str, str]) -> _LayerValues:
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for variable in sorted(environ):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in NOT_SETTINGS:
            continue
        from dsh_memory.runtime.config.keys import keys, parse_text, unknown_key

        source = f"environment variable {variable}"
        name = variable[len(ENVIRONMENT_PREFIX) :].lower().replace("__", ".", 1)
        info = keys().get(name)
        if info is None:
            raise unknown_key(name, source=source)
        if info.environment != variable:
            raise ConfigError(
                f"{source} is no configuration variable.",
                code="CONFIG_UNKNOWN_KEY",
                hint=f"Write it as {info.environment}.",
                key=name,
            )
        values[name] = parse_text(info, environ[variable], source=source)
        sources[name] = source
    return _LayerValues("environment", values, sources)


def _command_line_layer(overrides: Iterable[str]) -> _LayerValues:
    values = dict(parse_override(text) for text in overrides)
    return _LayerValues("command-line", values, dict.fromkeys(values, "--set"))


def _merge(
    layers: Iterable[_LayerValues], *, user: ConfigDocument, site: ConfigDocument
) -> LoadedConfig:
    merged: dict[str, dict[str, Any]] = {}
    provenance: dict[str, Layer] = {
        f"{section}.{field}": "default"
        for section, model in SECTIONS.items()
        for field in model.model_fields
    }
    sources: dict[str, str] = {}
    values: dict[str, Any] = {}
    for layer in layers:
        _validate_each(layer)
        for key, value in layer.values.items():
            section, _, field = key.partition(".")
            merged.setdefault(section, {})[field] = value
            provenance[key] = layer.layer
            sources[key] = layer.sources[key]
            values[key] = value
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        context = error.errors()[0].get("ctx", {})
        key = str(context.get("key", ""))
        blamed = sources.get(key) or next(
            (
                text
                for name, text in reversed(sources.items())
                if name.startswith(key.split(".")[0])
            ),
            str(user.path),
        )
        shown = _shown(values[key]) if key in values else _shown_default(key)
        reason = f"{context.get('reason', 'is invalid')}."
        raise ConfigError(
            f"{blamed}: {key} ({shown}) {reason}",
            hint=_sentence(context.get("hint")),
            key=key,
            reason=reason,
        ) from None
    return LoadedConfig(
        settings=settings,
        provenance=provenance,
        sources=sources,
        user_path=user.path,
        site_path=site.path,
        revision=user.revision,
        site_revision=site.revision,
    )


def _validate_each(layer: _LayerValues) -> None:
    """Judge every value of a layer on its own, so that the error can name its source."""
    for key, value in layer.values.items():
        section, _, field = key.partition(".")
        try:
            SECTIONS[section].model_validate({field: value})
        except ValidationError as error:
            raise _invalid(key, value, layer.sources[key], error) from None


def _invalid(key: str, value: object, source: str, error: ValidationError) -> ConfigError:
    problem = error.errors(include_url=False)[0]
    context = problem.get("ctx", {})
    if problem["type"] == "base_url":
        return ConfigError(
            f"{source}: {key}: {context['reason']}",
            code="CONFIG_BASE_URL",
            hint=context["hint"],
            key=key,
            reason=context["reason"],
        )
    from dsh_memory.runtime.config.keys import keys

    info = keys()[key]
    if problem["type"] in ("path", "model", "literal_error") or info.minimum is None:
        reason = problem["msg"][:1].lower() + problem["msg"][1:]
    else:
        reason = f"must be {_article(info.type_text)}"
    return ConfigError(
        f"{source}: {key} = {_shown(value)} is refused: {reason}.",
        hint=f"{key}: {info.meaning}",
        key=key,
        reason=f"{reason}.",
    )


def _unknown(name: str, source: str) -> ConfigError:
    from dsh_memory.runtime.config.keys import unknown_key

    return unknown_key(name, source=source)


def _article(text: str) -> str:
    return f"an {text}" if text.startswith("i") else f"a {text}"


def _sentence(text: object) -> str | None:
    if not isinstance(text, str) or not text:
        return None
    return text if text.startswith("dsh-memory") else text[0].upper() + text[1:] + "."


def _shown_default(key: str) -> str:
    section, _, field = key.partition(".")
    default = SECTIONS[section].model_fields[field].default
    return "not set" if default is None else f"{_shown(default)}, the default"


def _shown(value: object) -> str:
    """Return a value for a message: short, printable, as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = value if value.isprintable() else ascii(value)[1:-1]
        return f'"{text}"' if len(text) <= 80 else f'"{text[:79]}…"'
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"

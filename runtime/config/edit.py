"""Changing the user's configuration file: fenced, atomic, and with its comments kept.

A write happens under a lock on the file's directory. It re-reads the file there, refuses when its
revision is not the one that the caller saw, edits the text, validates what will stand in the file,
and replaces the file in one step. So of two writers that read the same revision one wins, and the
other gets ``CONFIG_CONFLICT`` with nothing written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dsh_memory.runtime.config.keys import key_info, keys, parse_text, unknown_key
from dsh_memory.runtime.config.layers import (
    ConfigDocument,
    flatten,
    parse,
    read_bytes,
    revision_of,
    validate_layers,
    validate_value,
)
from dsh_memory.runtime.config.paths import site_config_file
from dsh_memory.runtime.config.settings import Settings
from dsh_memory.runtime.errors import ConfigError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

LOCK_WAIT_SECONDS = 5.0


class _Unset:
    """The value of a key that is to be removed from the user's file."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


@dataclass(frozen=True, slots=True)
class EditResult:
    """What a write did.

    Attributes:
        path: The file that was written; the target, when the given path is a symbolic link.
        revision: The file's revision afterwards.
        changed: False when the file already said so, and nothing was written.
        settings: The settings of the site and the user file together.
    """

    path: Path
    revision: str
    changed: bool
    settings: Settings


def set_value(
    path: Path, key: str, value: object, *, expected_revision: str | None = None
) -> EditResult:
    """Set one key; see `apply_changes`."""
    return apply_changes(path, {key: value}, expected_revision=expected_revision)


def set_text(
    path: Path, key: str, text: str, *, expected_revision: str | None = None
) -> EditResult:
    """Set one key from the text of a command line, read by the key's type."""
    value = parse_text(key_info(key, source="config set"), text, source="config set")
    return apply_changes(path, {key: value}, expected_revision=expected_revision)


def unset_value(path: Path, key: str, *, expected_revision: str | None = None) -> EditResult:
    """Remove one key from the file, so that the weaker layers decide; see `apply_changes`."""
    return apply_changes(path, {key: UNSET}, expected_revision=expected_revision)


def apply_changes(
    path: Path,
    changes: Mapping[str, object],
    *,
    expected_revision: str | None = None,
    site_path: Path | None = None,
) -> EditResult:
    """Write several changes as one.

    Args:
        path: The user's configuration file; it and its directory are created when missing.
        changes: Key -> new value of the key's own type, or `UNSET`. A key that this program does
            not know can only be unset, to repair a file.
        expected_revision: The revision that the caller read (``absent`` for no file). None: take
            the file as it is now.
        site_path: The site file to validate with; by default the machine's.

    Raises:
        ConfigError: ``CONFIG_CONFLICT``, ``CONFIG_WRITE_FAILED``, or what `layers.load`
            raises for the file as it would be. Nothing is written then.
    """
    target = Path(os.path.realpath(path))
    _refuse_unknown(changes, path)
    if not target.parent.is_dir():
        # Judged before the directory is made, so that a refused change leaves nothing behind.
        settings = _judge(target, _edited(None, changes, target), site_path)
        if all(value is UNSET for value in changes.values()):
            return EditResult(target, revision_of(None), False, settings)
    with _directory_lock(target):
        content = read_bytes(target)
        revision = revision_of(content)
        if expected_revision is not None and revision != expected_revision:
            raise ConfigError(
                f"{target} was changed by someone else since it was read; nothing was written.",
                code="CONFIG_CONFLICT",
                hint="Read the configuration again and repeat the change.",
            )
        edited = _edited(content, changes, target)
        settings = _judge(target, edited, site_path)
        if edited == content or (content is None and not edited):
            return EditResult(target, revision, False, settings)
        _replace(target, edited)
        return EditResult(target, revision_of(edited), True, settings)


def find_problems(
    path: Path, changes: Mapping[str, object], *, site_path: Path | None = None
) -> dict[str, ConfigError]:
    """Judge changes without writing: key -> its error; empty when they could be saved.

    Values are judged one by one first, so that an editor can mark every wrong field; the rules
    between fields are judged when no single value is wrong. A problem of the file itself has the
    key ``""``.
    """
    problems: dict[str, ConfigError] = {}
    for key, value in changes.items():
        if value is UNSET:
            continue
        try:
            key_info(key, source=str(path))
            validate_value(key, value, source=str(path))
        except ConfigError as error:
            problems[key] = error
    if problems:
        return problems
    target = Path(os.path.realpath(path))
    try:
        _judge(target, _edited(read_bytes(target), changes, target), site_path)
    except ConfigError as error:
        key = error.key if isinstance(error.key, str) else ""
        problems[key] = error
    return problems


def _refuse_unknown(changes: Mapping[str, object], path: Path) -> None:
    for key, value in changes.items():
        if key not in keys() and value is not UNSET:
            raise unknown_key(key, source=str(path))


def _judge(target: Path, content: bytes | None, site_path: Path | None) -> Settings:
    """Validate a file's future content as the file is validated when it is read."""
    from dsh_memory.runtime.config.layers import read_document

    values = {} if content is None else flatten(parse(content, target), str(target))
    site = read_document(site_path if site_path is not None else site_config_file())
    user = ConfigDocument(target, revision_of(content), values)
    return validate_layers(site=site, user=user).settings


def _edited(content: bytes | None, changes: Mapping[str, object], path: Path) -> bytes:
    """Return the file's text with the changes made and everything else as it was."""
    import tomlkit

    if content is not None:
        parse(content, path)  # the reader's own words about a syntax error
    text = "" if content is None else content.decode("utf-8-sig")
    document = tomlkit.parse(text)
    for key, value in changes.items():
        section, _, field = key.partition(".")
        if value is UNSET:
            _remove(document, section, field, path)
            continue
        if value is None:
            raise ConfigError(
                f"{path}: {key} cannot be set to nothing.",
                hint=f"Remove it instead: dsh-memory config unset {key}",
                key=key,
                reason="a value is needed; remove the key instead.",
            )
        table: Any = document.get(section)
        if table is None:
            table = tomlkit.table()
            document[section] = table
        elif not isinstance(table, dict):
            raise ConfigError(f"{path}: {section} must be a table of settings.", key=section)
        table[field] = value
    edited = tomlkit.dumps(document)
    if text.count("\n") == text.count("\r\n") > 0:  # the new lines as the old ones
        edited = re.sub(r"(?<!\r)\n", "\r\n", edited)
    try:
        return edited.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{path}: a new value is no UTF-8 text: {error.object[error.start]!a}.",
            hint="A configuration file is UTF-8. Give such a path on the command line (--set).",
        ) from error


def _remove(document: TOMLDocument, section: str, field: str, path: Path) -> None:
    from tomlkit.items import Item

    table: Any = document.get(section)
    if field and isinstance(table, dict) and field in table:
        del table[field]
        # A table that holds nothing any more, no comment either, was only there for the key.
        if not table and isinstance(table, Item) and not table.as_string().strip():
            del document[section]
    elif not field and table is not None:
        del document[section]
    elif f"{section}.{field}" not in keys():
        raise unknown_key(f"{section}.{field}" if field else section, source=str(path))


@contextlib.contextmanager
def _directory_lock(target: Path) -> Iterator[None]:
    """Hold the writers' lock. It lies on the directory itself, so that no lock file is left."""
    directory = target.parent
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _write_failed(target, error) from error
    try:
        deadline = time.monotonic() + LOCK_WAIT_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ConfigError(
                        f"Another program has kept {directory} locked for {LOCK_WAIT_SECONDS:g} s; "
                        "nothing was written.",
                        code="CONFIG_CONFLICT",
                        hint="Repeat the change when the other writer is done.",
                        retryable=True,
                    ) from None
                time.sleep(0.02)
            except OSError as error:
                raise _write_failed(target, error) from error
        yield
    finally:
        os.close(descriptor)


def _replace(target: Path, content: bytes) -> None:
    """Put the content in the file's place in one step, readable and writable by its owner only."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        try:
            _refuse_read_only(target)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise _write_failed(target, error) from error


def _refuse_read_only(target: Path) -> None:
    # A rename would replace a read-only file without asking, and the owner made it so on purpose.
    # The mode is looked at as well, because permissions do not stop root.
    try:
        state = target.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(state.st_mode):
        raise OSError(0, "it is no regular file")
    if not state.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(0, "the file is read-only")


def _write_failed(target: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"The configuration file {target} cannot be written: {error.strerror or error}.",
        code="CONFIG_WRITE_FAILED",
        hint="Nothing was changed. Make the file and its directory writable, "
        "or name another file with --config.",
    )

"""Writing one note into a vault: exclusive, private, complete, or not at all (document 003)."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from dsh_memory.exporters.errors import (
    CANCELLED,
    NOTE_EXISTS,
    VAULT_INVALID,
    VAULT_MISSING,
    VAULT_UNUSABLE,
    WRITE_FAILED,
    ObsidianError,
)
from dsh_memory.exporters.note import NoteContent, note_name, note_text

__all__ = ["NoteContent", "write_note"]

_CHUNK: Final = 64 * 1024
"""Bytes between two looks at the cancellation flag."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DESCRIPTORS: Final = "/proc/self/fd"

_NO_DIRECTORY_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS})
"""How file systems say that a directory cannot be synced there; the file itself was."""


def write_note(
    vault_path: str,
    content: NoteContent,
    *,
    cancelled: Callable[[], bool] | None = None,
    token: str | None = None,
) -> Path:
    """Write `content` as a new note directly in the vault and return its path.

    The vault may be a symbolic link to a directory; the note itself never is one, never replaces
    anything, has mode 0600 whatever the umask, and is on disk (file and directory) on return. On
    any failure the file that this call created is removed again, and no other.

    Args:
        vault_path: An absolute path to an existing directory.
        cancelled: Polled between 64 KiB chunks, and once more when the note is complete.
        token: The random part of the file name; chosen here unless given.

    Raises:
        ObsidianError: Nothing was written; the code tells why.
    """
    data = note_text(content).encode("utf-8")
    name = note_name(content, token if token is not None else secrets.token_hex(6))
    vault = _open_vault(vault_path)
    try:
        _write_new(vault, name, data, vault_path, cancelled or (lambda: False))
    finally:
        os.close(vault)
    return Path(vault_path) / name


def _open_vault(vault_path: str) -> int:
    if not vault_path.startswith("/") or "\0" in vault_path:
        raise ObsidianError(
            f"The vault path {_shown(vault_path)} is not an absolute path.",
            code=VAULT_INVALID,
            hint="Set obsidian.vault_path to the absolute path of your vault.",
        )
    try:
        return os.open(vault_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "does not exist" if isinstance(error, FileNotFoundError) else "is not a directory"
        raise ObsidianError(
            f"The vault {_shown(vault_path)} {what}.",
            code=VAULT_MISSING,
            hint="Create the vault in Obsidian, or correct obsidian.vault_path.",
        ) from error
    except (OSError, ValueError) as error:
        raise ObsidianError(
            f"The vault {_shown(vault_path)} cannot be opened: {_reason(error)}.",
            code=VAULT_UNUSABLE,
            hint="Check the permissions of the vault and of the directories above it.",
        ) from error


class _NeedsNameError(Exception):
    """This file system, or this system, cannot hold a file that has no name yet."""


def _write_new(
    vault: int, name: str, data: bytes, vault_path: str, cancelled: Callable[[], bool]
) -> None:
    try:
        try:
            _create(vault, name, data, cancelled, nameless=True)
        except _NeedsNameError:
            _create(vault, name, data, cancelled, nameless=False)
    except FileExistsError as error:
        raise ObsidianError(
            f"The vault {_shown(vault_path)} already has an entry {name}.",
            code=NOTE_EXISTS,
            hint="Nothing was overwritten; run the search again for a new name.",
            retryable=True,
        ) from error
    except OSError as error:
        _fail(vault_path, error)


def _create(
    vault: int, name: str, data: bytes, cancelled: Callable[[], bool], *, nameless: bool
) -> None:
    """Write the note under its name, or give it that when it is complete.

    Of a note that has no name yet nothing is left even if the process is killed.
    """
    file = _open_nameless(vault) if nameless else os.open(name, _NEW, 0o600, dir_fd=vault)
    try:
        os.fchmod(file, 0o600)
        _write_all(file, data, cancelled)
        os.fsync(file)
        if nameless:
            _give_name(file, vault, name)
        _sync_directory(vault)
        _stop_if(cancelled)
    except BaseException:
        _remove(vault, name, os.fstat(file))
        raise
    finally:
        os.close(file)  # only now: while it is open, no other file can have its inode number


def _open_nameless(vault: int) -> int:
    flag = getattr(os, "O_TMPFILE", None)  # Linux only
    if flag is None or not Path(_DESCRIPTORS).is_dir():
        raise _NeedsNameError
    try:
        return os.open(".", os.O_WRONLY | flag | os.O_CLOEXEC, 0o600, dir_fd=vault)
    except OSError as error:
        raise _NeedsNameError from error


def _give_name(file: int, vault: int, name: str) -> None:
    try:
        os.link(f"{_DESCRIPTORS}/{file}", name, dst_dir_fd=vault, follow_symlinks=True)
    except FileExistsError:
        raise
    except OSError as error:
        raise _NeedsNameError from error


def _write_all(file: int, data: bytes, cancelled: Callable[[], bool]) -> None:
    position = 0
    while position < len(data):
        _stop_if(cancelled)
        position += os.write(file, data[position : position + _CHUNK])


def _stop_if(cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise ObsidianError(
            "The run was cancelled while its note was being written; the note was removed.",
            code=CANCELLED,
            retryable=True,
        )


def _sync_directory(vault: int) -> None:
    try:
        os.fsync(vault)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise


def _remove(vault: int, name: str, ours: os.stat_result) -> None:
    """Remove the entry if it is still the file that we created."""
    try:
        status = os.stat(name, dir_fd=vault, follow_symlinks=False)
        if (status.st_dev, status.st_ino) == (ours.st_dev, ours.st_ino):
            os.unlink(name, dir_fd=vault)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ObsidianError(
            f"The note failed and its partial file {name} could not be removed: {_reason(error)}.",
            hint="Remove that file from the vault by hand.",
        ) from error


def _fail(vault_path: str, error: OSError) -> NoReturn:
    hints = {
        errno.ENOSPC: "Free some space on the vault's disk.",
        errno.EDQUOT: "Free some of your disk quota.",
        errno.EROFS: "The vault is on a read-only file system; choose another.",
        errno.EACCES: "Make the vault writable, or choose another.",
        errno.EPERM: "The vault's file system must allow private files (mode 0600).",
    }
    raise ObsidianError(
        f"The note could not be written to {_shown(vault_path)}: {_reason(error)}.",
        code=WRITE_FAILED,
        hint=hints.get(error.errno or 0, "Nothing was left behind; check the vault and its disk."),
    ) from error


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _shown(vault_path: str) -> str:
    return repr(vault_path if len(vault_path) <= 200 else vault_path[:199] + "…")

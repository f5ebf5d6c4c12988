"""Errors of the note export (document 003): the search fails with one of them, never silently."""

from __future__ import annotations

from typing import Final

from dsh_memory.runtime.errors import DshMemoryError

VAULT_INVALID: Final = "OBSIDIAN_VAULT_INVALID"
"""The configured path is empty, relative or impossible as a path."""

VAULT_MISSING: Final = "OBSIDIAN_VAULT_MISSING"
"""There is nothing at the configured path, or it is no directory."""

VAULT_UNUSABLE: Final = "OBSIDIAN_VAULT_UNUSABLE"
"""The directory exists but cannot be opened."""

NOTE_EXISTS: Final = "OBSIDIAN_NOTE_EXISTS"
"""Something already has the new note's name; nothing is ever overwritten or followed."""

WRITE_FAILED: Final = "OBSIDIAN_WRITE_FAILED"
"""Creating or writing the note failed; a partial file was removed."""

CANCELLED: Final = "OBSIDIAN_CANCELLED"
"""The run was given up while the note was being written; the partial file was removed."""


class ObsidianError(DshMemoryError):
    """A note could not be written; `code` is one of the constants of this module."""

    default_code = WRITE_FAILED

"""The two ways in which an old log cannot be read (document 002, error codes)."""

from __future__ import annotations

from typing import ClassVar

from dsh_memory.sessionquery.errors import CORRUPT_SESSION, PERSISTENCE_FAILED, SessionQueryError


class CorruptLogError(SessionQueryError):
    """The rows of the log contradict each other: part of a finished turn was lost or altered."""

    default_code: ClassVar[str] = CORRUPT_SESSION

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The session log is corrupt: {reason}.",
            hint="Restore the log from a backup, or move its directory out of the store.",
        )


class MigrationRefusedError(SessionQueryError):
    """The log is well-formed but holds something that has no counterpart in the next generation."""

    default_code: ClassVar[str] = PERSISTENCE_FAILED

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The session log of an older format cannot be migrated: {reason}.",
            hint="The log is unchanged; a DSH of the version that wrote it can still read it.",
        )

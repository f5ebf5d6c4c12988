"""What the migration steps know about the log besides its rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogContext:
    """One log that is being migrated.

    Attributes:
        session_id: Goes into the ids of messages and compactions that had none.
        created_at: Of the header, ms; the time of rows that are added to an empty log.
        generation: The generation on disk; a step learns from it whether the log passed the
            earlier steps.
        is_seeded: Whether the log begins with rows copied from a parent (a fork).
        seed_length: Generations 0 and 1 only: how many events were copied.
    """

    session_id: str
    created_at: int
    generation: int
    is_seeded: bool
    seed_length: int = 0

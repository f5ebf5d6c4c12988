"""The way of an old log through the generations, one step after the other.

Each step is a pure function over rows in a module of its own. A new generation is one more module
and one more entry in `STEPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from dsh_memory.sessionquery.generations import v0_to_v1, v1_to_v2, v2_to_v3, v3_to_v4
from dsh_memory.sessionquery.generations.catalog import complete
from dsh_memory.sessionquery.generations.context import LogContext
from dsh_memory.sessionquery.generations.decoding import decode
from dsh_memory.sessionquery.generations.values import Row
from dsh_memory.sessionquery.model.children import Child

Step: TypeAlias = Callable[[Iterable[Row], LogContext], Iterator[Row]]

STEPS: tuple[Step, ...] = (
    v0_to_v1.migrate,
    v1_to_v2.migrate,
    v2_to_v3.migrate,
    v3_to_v4.migrate,
)
"""``STEPS[n]`` turns rows of generation n into rows of generation n+1."""


def migrated_rows(
    header_row: dict[str, Any],
    lines: Iterable[bytes | memoryview],
    *,
    children: Callable[[], Iterable[Child]],
) -> Iterator[Row]:
    """Yield the events of an old log in the form of the current generation.

    The events are those that the reader checks and closes like any other log
    (`rules.session`, `log.interrupted_turn`); nothing counts before the iteration ends.

    Args:
        header_row: The header as it stands in the log, already found well-formed.
        lines: The complete lines behind the header.
        children: The listed subagent sessions of this session; called after the last line.

    Raises:
        CorruptLogError: The rows contradict each other.
        MigrationRefusedError: A row has no counterpart in the next generation.
    """
    generation = int(header_row["version"])
    log = LogContext(
        session_id=header_row["id"],
        created_at=int(header_row["createdAt"]),
        generation=generation,
        is_seeded=bool(header_row.get("isSeeded", "seedLength" in header_row)),
        seed_length=int(header_row.get("seedLength", 0)),
    )
    rows = decode(lines, generation, is_seeded=log.is_seeded)
    for step in STEPS[generation:]:
        rows = step(rows, log)
    return complete(rows, log, children)

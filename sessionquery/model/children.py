"""The subagents of a session as a reader of its log asks for them.

Only logs of older generations need them: `sessionquery.generations.catalog` completes the list of
subagents that such a log does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from dsh_memory.sessionquery.model.sessions import SessionHeader


@dataclass(frozen=True, slots=True)
class Child:
    """A listed subagent session of the log's session.

    Attributes:
        header: Its header.
        descriptors: Reads the data of its own (not inherited) ``subagent/descriptor`` events;
            None if the session cannot be read.
    """

    header: SessionHeader
    descriptors: Callable[[], list[dict[str, Any]] | None]


ChildrenOf: TypeAlias = Callable[[str], Iterable[Child]]
"""Tells the listed subagents of the session with this id."""


def no_children(session_id: str) -> tuple[Child, ...]:
    """Tell that a session has no subagents in the store."""
    return ()

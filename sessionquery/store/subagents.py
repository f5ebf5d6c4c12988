"""The subagents of a session as far as the store lists them.

Only logs of older generations need them: their parents did not log which subagents they started,
so the list is completed from the children's own logs. Such a log's events thus depend on other
logs, which `family_revisions` makes visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.discovery import LogRevision
from dsh_memory.sessionquery.disk.names import CURRENT_GENERATION
from dsh_memory.sessionquery.errors import ABORTED, SessionQueryError
from dsh_memory.sessionquery.model.children import ChildrenOf
from dsh_memory.sessionquery.store.listing import ListedSession

if TYPE_CHECKING:
    from dsh_memory.sessionquery.model.children import Child


def subagents_by_parent(
    sessions: Iterable[ListedSession],
) -> Mapping[str, list[ListedSession]]:
    """Group the listed subagent sessions by their parent's id."""
    out: dict[str, list[ListedSession]] = {}
    for session in sessions:
        header = session.header
        if header.origin == "subagent" and header.parent_session is not None:
            out.setdefault(header.parent_session, []).append(session)
    return out


def children_of(
    root: Path, subagents: Mapping[str, list[ListedSession]], *, signal: AbortSignal
) -> ChildrenOf:
    """Return the `children` argument of `scan_log` for one state of the store."""

    def children(session_id: str) -> Iterator[Child]:
        from dsh_memory.sessionquery.model.children import Child

        for session in subagents.get(session_id, ()):
            yield Child(
                session.header,
                lambda session=session: _own_descriptors(root, session, signal),  # type: ignore[misc]
            )

    return children


def family_revisions(
    session: ListedSession, subagents: Mapping[str, list[ListedSession]]
) -> tuple[LogRevision, ...]:
    """Return the revisions of the other logs on which the events of `session` depend."""
    if session.found.revision.generation >= CURRENT_GENERATION:
        return ()
    return tuple(child.found.revision for child in subagents.get(session.header.id, ()))


def _own_descriptors(
    root: Path, session: ListedSession, signal: AbortSignal
) -> list[dict[str, Any]] | None:
    from dsh_memory.sessionquery.log.reader import EventStream

    out: list[dict[str, Any]] = []
    try:
        with EventStream(root, session.found, signal=signal) as stream:
            for event in stream:
                kind = event["type"]
                if kind == "subagent/descriptor":
                    out.append(event["data"])
                elif kind == "session/end-seed" and event["data"].get("inherited") is True:
                    out.clear()
    except SessionQueryError as error:
        if error.code == ABORTED:
            raise
        return None
    return out

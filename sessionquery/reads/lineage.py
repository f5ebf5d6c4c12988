"""How sessions descend from each other: ancestors and the tree of descendants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsh_memory.sessionquery.errors import INVALID_LINEAGE, SessionQueryError
from dsh_memory.sessionquery.js.collation import id_sort_key
from dsh_memory.sessionquery.model.reads import LineageNode, SessionTrace
from dsh_memory.sessionquery.model.sessions import SessionRecord


def trace_lineage(target: SessionRecord, records: Mapping[str, SessionRecord]) -> SessionTrace:
    """Follow the parents of `target` outwards and its children inwards.

    Args:
        target: One of `records`.
        records: Every session of the corpus by id.

    Raises:
        SessionQueryError: ``INVALID_LINEAGE`` if the ancestors form a cycle.
    """
    ancestors: list[SessionRecord] = []
    seen = {target.header.id}
    current = target
    unresolved: str | None = None
    while (parent_id := current.header.parent_session) is not None:
        if parent_id in seen:
            raise SessionQueryError(
                f"The ancestors of session {target.header.id!r} form a cycle at {parent_id!r}.",
                code=INVALID_LINEAGE,
            )
        parent = records.get(parent_id)
        if parent is None:
            unresolved = parent_id
            break
        seen.add(parent_id)
        ancestors.append(parent)
        current = parent
    return SessionTrace(
        target=target,
        ancestors=tuple(ancestors),
        descendants=_descendants(target.header.id, records.values()),
        complete=unresolved is None,
        root=current if unresolved is None else None,
        unresolved_parent_id=unresolved,
    )


def _descendants(root: str, records: Iterable[SessionRecord]) -> tuple[LineageNode, ...]:
    children: dict[str, list[SessionRecord]] = {}
    for record in records:
        parent = record.header.parent_session
        if parent is not None:
            children.setdefault(parent, []).append(record)
    # Breadth first to find all descendants, then built from the leaves: no recursion, however deep.
    order: list[SessionRecord] = []
    waiting = [root]
    for parent in waiting:
        found = children.get(parent, [])
        found.sort(key=lambda record: (record.header.created_at, id_sort_key(record.header.id)))
        order.extend(found)
        waiting.extend(record.header.id for record in found)
    nodes: dict[str, LineageNode] = {}
    for record in reversed(order):
        below = children.get(record.header.id, [])
        nodes[record.header.id] = LineageNode(
            record, tuple(nodes[child.header.id] for child in below)
        )
    return tuple(nodes[record.header.id] for record in children.get(root, []))

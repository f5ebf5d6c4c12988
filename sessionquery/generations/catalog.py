"""The list of its subagents that an old parent log does not have.

Generation 4 parents log a ``subagent/catalog`` event for each subagent that they start; generation
0 never did, generation 3 mostly. What is missing is made up, at the end of the log, from the child
sessions of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dsh_memory.sessionquery.generations.context import LogContext
from dsh_memory.sessionquery.generations.problems import MigrationRefusedError
from dsh_memory.sessionquery.generations.shapes import one_of, text
from dsh_memory.sessionquery.generations.values import Row
from dsh_memory.sessionquery.model.children import Child

_is_mode = one_of("one-shot", "continuable")


def complete(
    rows: Iterable[Row], log: LogContext, children: Callable[[], Iterable[Child]]
) -> Iterator[Row]:
    """Yield the rows and then a ``subagent/catalog`` row for each child that has none.

    Args:
        rows: A whole log in generation-4 form.
        log: The log.
        children: Called once, after the last row.

    Raises:
        MigrationRefusedError: A row of the log contradicts the child that it names.
    """
    listed: dict[Any, dict[str, Any]] = {}
    seq, time = 0, log.created_at
    for row in rows:
        kind = row["type"]
        if kind == "subagent/catalog":
            data = row["data"]
            if type(data) is dict and text(data.get("childId")):
                listed[data["childId"]] = data
        elif kind == "session/end-seed" and "inherited" in row["data"]:
            listed.clear()
        seq, time = row["seq"] + 1, row["time"]
        yield row
    for child in sorted(children(), key=_order):
        data = catalog_data(child)
        known = listed.get(child.header.id)
        if known is None:
            yield {"type": "subagent/catalog", "seq": seq, "time": time, "data": data}
            seq += 1
        elif _contradicts(known, data):
            raise MigrationRefusedError(
                f"the log's entry for the subagent {child.header.id!r} contradicts its session"
            )


def catalog_data(child: Child) -> dict[str, Any]:
    """Return the data of the ``subagent/catalog`` event for `child`."""
    data = {"childId": child.header.id, "childCreatedAt": child.header.created_at}
    descriptors = child.descriptors()
    described = _described(descriptors[0]) if descriptors and len(descriptors) == 1 else None
    if described is None:
        return {"version": 1, **data, "mode": "unknown"}
    return {"version": 0, **data, **described}


def _described(descriptor: Any) -> dict[str, Any] | None:
    if type(descriptor) is not dict:
        return None
    version = descriptor.get("version")
    mode = "continuable" if version == 1 else descriptor.get("mode")
    if version not in (1, 2, 3) or not _is_mode(mode):
        return None
    label = descriptor.get("label")
    if "label" not in descriptor:
        return {"mode": mode} if mode == "one-shot" else None
    return {"mode": mode, "label": label} if text(label) else None


def _contradicts(known: dict[str, Any], data: dict[str, Any]) -> bool:
    if known.get("childCreatedAt") != data["childCreatedAt"]:
        return True
    if data["mode"] == "unknown":
        return False
    return known.get("mode") != data["mode"] or known.get("label") != data.get("label")


def _order(child: Child) -> tuple[int, bytes]:
    return child.header.created_at, child.header.id.encode("utf-16-be", "surrogatepass")

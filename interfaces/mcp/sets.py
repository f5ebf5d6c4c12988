"""The tool sets by name."""

from __future__ import annotations

from collections.abc import Sequence

from dsh_memory.interfaces.mcp.declarations import ToolSet


def tool_sets(
    names: Sequence[str], *, cwd: str | None = None, session_id: str | None = None
) -> list[ToolSet]:
    """Return the sets ``memory``, ``query`` and ``recall`` that `names` asks for.

    Args:
        cwd: The calling agent's directory; used by ``query`` and ``recall``.
        session_id: The calling agent's session, likewise.
    """
    from dsh_memory.pipeline.shared.workspace_access import Caller

    caller = Caller(cwd=cwd, session_id=session_id)
    sets: list[ToolSet] = []
    for name in names:
        if name == "memory":
            from dsh_memory.interfaces.mcp.memory_set import memory_set

            sets.append(memory_set())
        elif name == "query":
            from dsh_memory.interfaces.mcp.query_set import query_set

            sets.append(query_set(caller))
        elif name == "recall":
            from dsh_memory.interfaces.mcp.recall_set import recall_set

            sets.append(recall_set(caller))
        else:
            raise ValueError(f"unknown tool set {name!r}")
    return sets

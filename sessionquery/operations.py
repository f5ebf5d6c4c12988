"""The engine's operations by their original names, with JSON arguments and JSON answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.engine import SessionQueryEngine
from dsh_memory.sessionquery.errors import INVALID_FILTER, SessionQueryError
from dsh_memory.sessionquery.model.wire import to_wire

Arguments = Mapping[str, Any]
Operation = Callable[[SessionQueryEngine, Arguments, AbortSignal], Awaitable[Any]]


def _given(args: Arguments, **names: str) -> dict[str, Any]:
    """Pick the arguments that are present; an explicit null is not an absent one."""
    return {ours: args[theirs] for ours, theirs in names.items() if theirs in args}


async def _list_sessions(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    return await engine.list_sessions(signal=signal)


async def _filter_sessions(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    return await engine.filter_sessions(args.get("filters"), signal=signal)


def _search_arguments(args: Arguments, **names: str) -> dict[str, Any]:
    given = _given(args, limit="limit", cursor="cursor", **names)
    if "cursor" in given and given["cursor"] is None:
        # The engine takes None for an absent cursor; an explicit null is one that is not text.
        given["cursor"] = False
    return given


async def _search_sessions(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    given = _search_arguments(args, session_filters="sessionFilters", event_filters="eventFilters")
    return await engine.search_sessions(args.get("query"), **given, signal=signal)


async def _search_events(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    given = _search_arguments(args, filters="filters")
    return await engine.search_events(
        args.get("sessionId"), args.get("query"), **given, signal=signal
    )


async def _list_events(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    return await engine.list_events(args.get("sessionId"), signal=signal)


async def _filter_events(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    return await engine.filter_events(args.get("sessionId"), args.get("filters"), signal=signal)


async def _read_event(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    given = _given(args, before="before", after="after")
    return await engine.read_event(args.get("sessionId"), args.get("seq"), **given, signal=signal)


async def _read_session(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    return await engine.read_session(args.get("sessionId"), signal=signal)


async def _read_surface(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    return await engine.read_surface(args.get("sessionId"), signal=signal)


async def _read_title(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    return await engine.read_title(args.get("sessionId"), signal=signal)


async def _read_title_snapshot(
    engine: SessionQueryEngine, args: Arguments, signal: AbortSignal
) -> Any:
    return await engine.read_title_snapshot(args.get("sessionId"), signal=signal)


async def _read_titles(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    ids = args.get("sessionIds")
    if ids is not None and not isinstance(ids, (list, str)):
        raise SessionQueryError("The session ids must be a list.", code=INVALID_FILTER)
    return await engine.read_titles(ids or (), signal=signal)


async def _trace_session(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    return await engine.trace_session(args.get("sessionId"), signal=signal)


async def _trace_event(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    return await engine.trace_event(args.get("sessionId"), args.get("seq"), signal=signal)


async def _observe_session(engine: SessionQueryEngine, args: Arguments, signal: AbortSignal) -> Any:
    return await engine.observe_session(args.get("sessionId"), signal=signal)


OPERATIONS: Final[dict[str, Operation]] = {
    "listSessions": _list_sessions,
    "filterSessions": _filter_sessions,
    "searchSessions": _search_sessions,
    "searchEvents": _search_events,
    "listEvents": _list_events,
    "filterEvents": _filter_events,
    "readEvent": _read_event,
    "readSession": _read_session,
    "readSessionFull": _read_session,
    "readSurface": _read_surface,
    "readSurfaceFull": _read_surface,
    "readTitle": _read_title,
    "readTitleSnapshot": _read_title_snapshot,
    "readTitleSnapshots": _read_titles,
    "traceSession": _trace_session,
    "traceEvent": _trace_event,
    "observeSession": _observe_session,
    "observeSessionFull": _observe_session,
}
"""Every operation by name; answers are complete whatever the name."""


async def run_operation(
    engine: SessionQueryEngine,
    op: str,
    args: Arguments,
    *,
    aborted: bool = False,
    diagnose: Callable[[str], None] | None = None,
) -> Any:
    """Run one operation.

    Args:
        engine: The engine.
        op: A key of `OPERATIONS`.
        args: JSON arguments as in the original (``sessionId``, ``eventFilters`` ...); other keys
            are ignored.
        aborted: Run it with a signal that is already aborted.
        diagnose: Gets the diagnostics of a search, which are no part of the original's answer.

    Returns:
        The answer as JSON, in the original's form.

    Raises:
        SessionQueryError: The operation's own failure.
        DshMemoryError: ``REQUEST_OPERATION`` for an unknown operation.
    """
    operation = OPERATIONS.get(op)
    if operation is None:
        raise DshMemoryError(
            f"Unknown operation {op!r}.",
            code="REQUEST_OPERATION",
            hint=f"Known operations: {', '.join(OPERATIONS)}",
        )
    answer = to_wire(await operation(engine, args, AbortSignal(aborted=aborted)))
    if isinstance(answer, dict):
        for diagnostic in answer.pop("diagnostics", ()):
            if diagnose is not None:
                diagnose(diagnostic)
    if op == "observeSessionFull":
        del answer["source"]
    return answer

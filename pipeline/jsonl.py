"""Many requests in one process: one JSON line in, one JSON answer out, in order.

A line is ``{"id", "op", "args"}``; other keys are ignored. `op` is an operation of the engine
(`sessionquery.operations`) or one of ``recall_memory``, ``review_jev_filtered`` and
``fetch_session``. Anywhere in `args`, ``{"$cursorOf": ID}`` stands for the next cursor of answer ID
(left out if that answer had none), and ``"$aborted": true`` asks for an already cancelled call. An
answer is ``{"id", "ok"}`` or ``{"id", "error": {"code", "message"}}``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.pipeline.shared.errors import INVALID, RequestError, clipped, shown
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.sessionquery.abort import AbortSignal

if TYPE_CHECKING:
    from dsh_memory.sessionquery.engine import SessionQueryEngine

Answer = dict[str, Any]
MEMORY_OPERATIONS = ("recall_memory", "review_jev_filtered", "fetch_session")

_LEFT_OUT = object()


async def answer_lines(memory: MemoryWorkflow, lines: Iterable[str]) -> AsyncIterator[Answer]:
    """Yield the answer of each line that is not blank, as soon as it is known.

    A line that is no request is answered with ``REQUEST_INVALID`` and its id, else null.
    Cancellation and unforeseen exceptions end the iteration.
    """
    from dsh_memory.sessionquery.model.wire import payload

    cursors: dict[str, str | None] = {}
    for line in lines:
        if not line.strip():
            continue
        identifier: Any = None
        try:
            request = _parse(line)
            identifier = payload(request.get("id"))
            args = _resolved(request.get("args", {}), cursors)
            value = await _run(memory, request.get("op"), args)
        except RecursionError:
            cursors[_key(identifier)] = None
            yield {"id": identifier, "error": {"code": INVALID, "message": "Nested too deeply."}}
        except DshMemoryError as error:
            cursors[_key(identifier)] = None
            yield {"id": identifier, "error": {"code": error.code, "message": error.message}}
        else:
            cursors[_key(identifier)] = _next_cursor(value)
            yield {"id": identifier, "ok": value}


async def _run(memory: MemoryWorkflow, operation: object, args: Any) -> Any:
    if not isinstance(operation, str):
        raise RequestError(f"op must be the name of an operation, not {shown(operation)}.")
    aborted = isinstance(args, dict) and bool(args.pop("$aborted", False))
    if operation in MEMORY_OPERATIONS:
        signal = AbortSignal(aborted=True) if aborted else None
        if operation == "fetch_session":
            return (await memory.read_value(args, signal=signal)).to_json()
        review = operation == "review_jev_filtered"
        return (await memory.page(args, review=review, signal=signal)).to_json()
    from dsh_memory.sessionquery.operations import OPERATIONS, run_operation

    if operation not in OPERATIONS:
        known = ", ".join([*OPERATIONS, *MEMORY_OPERATIONS])
        raise RequestError(f"Unknown operation {clipped(operation)!r}.", hint=f"Known: {known}.")
    if not isinstance(args, dict):
        raise RequestError(f"args must be an object, not {shown(args)}.")
    engine = cast("SessionQueryEngine", memory.engine)
    return await run_operation(engine, operation, args, aborted=aborted)


def _parse(line: str) -> dict[str, Any]:
    try:
        request = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"The line is not JSON: {clipped(str(error), 200)}.") from error
    if not isinstance(request, dict):
        raise RequestError(f"A line must be an object, not {shown(request)}.")
    return request


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _resolved(value: Any, cursors: Mapping[str, str | None]) -> Any:
    """Replace cursor references; a new value, so that the request stays as it was."""
    if isinstance(value, list):
        parts = [_resolved(item, cursors) for item in value]
        return [None if part is _LEFT_OUT else part for part in parts]
    if not isinstance(value, dict):
        return value
    if "$cursorOf" in value:
        key = _key(value["$cursorOf"])
        if key not in cursors:
            raise RequestError(f"$cursorOf names no earlier answer: {clipped(key)}.")
        cursor = cursors[key]
        return _LEFT_OUT if cursor is None else cursor
    resolved = {name: _resolved(item, cursors) for name, item in value.items()}
    return {name: item for name, item in resolved.items() if item is not _LEFT_OUT}


def _key(identifier: Any) -> str:
    return identifier if isinstance(identifier, str) else json.dumps(identifier, sort_keys=True)


def _next_cursor(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    cursor = value.get("nextCursor", value.get("next_cursor"))
    return cursor if isinstance(cursor, str) else None

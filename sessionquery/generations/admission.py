"""Which events of generations 0 to 2 may go on: types, data keys and values.

The old migrations know closed sets. A type, key, block, source or reason outside them is refused
rather than guessed at, so that a log is either understood completely or not at all. The rules are
the union of what the steps up to generation 3 demand; a log is held to them once, when it enters.
"""

from __future__ import annotations

from typing import Any, Final

from dsh_memory.sessionquery.generations.messages import (
    assistant_message,
    blocks,
    goal_change,
    result_message,
    stream,
    title_message,
    usage,
    user_message,
)
from dsh_memory.sessionquery.generations.problems import MigrationRefusedError
from dsh_memory.sessionquery.generations.shapes import (
    Check,
    Maybe,
    Shape,
    anything,
    at_least,
    boolean,
    both,
    count,
    count_or_null,
    instant,
    integer,
    list_of,
    mapping,
    name,
    number,
    one_of,
    positive,
    text,
    true,
    variants,
)
from dsh_memory.sessionquery.generations.values import Row

# Parts

_ROUTE: Final = Shape(provider=name, model=name)
_RANGE: Final = Shape(start=count, end=count)
_SEQS: Final = list_of(count, least=1)
_PLACE: Final[dict[str, Check | Maybe]] = {"turn": count, "step": count}
_STEP: Final[dict[str, Check | Maybe]] = {"turn": positive, "step": positive}
_CALL: Final[dict[str, Check | Maybe]] = {
    "rootCallId": name,
    "parentCallId": name,
    "subCallId": name,
    "name": name,
    "arguments": anything,
}
_TEAM: Final[dict[str, Check | Maybe]] = {"version": one_of(1), "teamId": name}
_SHADOWED: Final[dict[str, Check | Maybe]] = {
    "shadowedRange": _RANGE,
    "shadowedSeqs": _SEQS,
    "shadowedTokenCount": count,
}


def _spans_its_ends(data: Any) -> bool:
    span, seqs = data["shadowedRange"], data["shadowedSeqs"]
    return bool(span["start"] == seqs[0] and span["end"] == seqs[-1])


def _explains_raw_output(data: Any) -> bool:
    return "llmStreamCall" not in data or "rawOutput" in data


def _limits_retries(data: Any) -> bool:
    return bool((data["mode"] == "normal") == ("maxRetries" in data))


def _is_error_flagged(data: Any) -> bool:
    return "error" not in data or data["message"]["content"][0].get("isError") is True


def _has_defaulted_values(data: Any) -> bool:
    header = data["header"]
    return bool(header.get("adapterDefaults", {}).keys() <= header["config"].keys())


def _pairs_agent_model(data: Any) -> bool:
    return ("agentProvider" in data) == ("agentModel" in data)


_HEADER: Final = Shape(
    config=Shape(
        provider=name,
        model=name,
        reasoningEffort=Maybe(name),
        temperature=Maybe(number),
        maxTokens=Maybe(positive),
        stop=Maybe(list_of(text)),
    ),
    adapterDefaults=Maybe(Shape(reasoningEffort=Maybe(true), maxTokens=Maybe(true))),
    system=Maybe(text),
    tools=Maybe(list_of(Shape(name=name, description=text, parameters=mapping))),
)
_END_ERROR: Final = Shape(
    message=name,
    code=name,
    status=Maybe(lambda value: count(value) and 100 <= value <= 599),
    providerRetryAfterMs=Maybe(number),
    requestId=Maybe(name),
)
_BARE: Final = Shape(kind=text)
_ABORT: Final = variants(
    "kind",
    dict.fromkeys(("user", "parent", "disposed", "legacy"), _BARE)
    | {"hook": Shape(kind=text, reason=text)},
)
_REASONS: Final[dict[str, Check]] = {
    **dict.fromkeys(("completed", "blocked", "max-tokens", "interrupted"), _BARE),
    "aborted": Shape(kind=text, reason=_ABORT),
    "error": Shape(kind=text, error=_END_ERROR),
}


def _end_reason(reason: Any) -> bool:
    """A known reason in its exact form; reasons of other kinds pass as they are."""
    kind = reason.get("kind") if reason.__class__ is dict else None
    return name(kind) and _REASONS.get(kind, anything)(reason)


_FILTER: Final = Shape(allow=Maybe(list_of(name)), deny=Maybe(list_of(name)))
_AGENT: Final[dict[str, Check | Maybe]] = {
    "version": one_of(3),
    "provider": name,
    "agentProvider": Maybe(name),
    "agentModel": Maybe(name),
    "agentReasoningEffort": Maybe(name),
    "persona": Maybe(name),
    "toolFilter": Maybe(both(_FILTER, bool)),
}
_DESCRIPTOR: Final = both(
    variants(
        "mode",
        {
            "one-shot": Shape(mode=text, label=Maybe(text), **_AGENT),
            "continuable": Shape(mode=text, label=name, **_AGENT),
        },
    ),
    _pairs_agent_model,
)
_PLANNED: Final[dict[str, Check | Maybe]] = {
    "kind": text,
    "id": name,
    "prompt": name,
    "scheduledAt": instant,
}
_SCHEDULE: Final = variants(
    "kind",
    {
        "at": Shape(**_PLANNED),
        "after": Shape(afterSeconds=positive, **_PLANNED),
        "every": Shape(everySeconds=at_least(300), **_PLANNED),
    },
)
_SCHEDULE_CHANGE: Final = variants(
    "operation",
    {
        "create": Shape(version=one_of(1), operation=text, schedule=_SCHEDULE),
        "delete": Shape(version=one_of(1), operation=text, id=name),
        "dispatch": Shape(version=one_of(1), operation=text, id=name, acceptedAt=Maybe(instant)),
    },
)
_MEMBER: Final = Shape(
    id=name,
    name=text,
    description=text,
    provider=text,
    context=one_of("fresh", "fork"),
    phase=one_of("provisioning", "active", "failed"),
)
_QUEUED: Final = Shape(
    id=name,
    senderId=name,
    senderName=text,
    targetId=name,
    content=blocks,
    delivery=one_of("quiet", "wakeup"),
)
_TASK: Final = Shape(
    id=name,
    revision=positive,
    subject=text,
    description=text,
    status=one_of("pending", "in_progress", "completed", "deleted"),
    blockedBy=list_of(text),
    writeScopes=list_of(text),
    ownerId=Maybe(text),
)
_SEARCH_BODY: Final = Shape(
    model=name,
    max_tokens=positive,
    messages=list_of(Shape(role=one_of("user"), content=list_of(anything)), least=1, most=1),
    tools=list_of(mapping, least=1, most=1),
)

# Tables

_COMMON: Final[dict[str, Check]] = {
    "agent-preset/selected": Shape(agentPreset=text),
    "agent/inbox/spliced": Shape(
        target=one_of("next-turn", "next-step"),
        start=count,
        inserted=list_of(user_message),
        removedCount=Maybe(count),
        outcome=Maybe(one_of("canceled")),
    ),
    "approval/asked": Shape(id=name, toolName=name, callId=Maybe(name), reason=Maybe(text)),
    "approval/decided": Shape(
        id=name, outcome=one_of("allowed-once", "rejected", "cancelled", "unavailable")
    ),
    "approval/policy": Shape(policy=one_of("ask", "never"), source=Maybe(one_of("delegation"))),
    "command/run": Shape(
        commandId=name, name=name, source=Shape(kind=one_of("user")), args=Maybe(text)
    ),
    "command/done": Shape(
        commandId=name,
        kind=one_of("success", "error"),
        text=Maybe(text),
        sourceEventSeq=Maybe(count),
    ),
    "compaction/start": Shape(compactionId=name, turn=count_or_null, sourceCommandId=Maybe(name)),
    "compaction/end": Shape(
        compactionId=name,
        turn=count_or_null,
        sourceCommandId=Maybe(name),
        error=Maybe(text),
    ),
    "compaction/prune": both(Shape(**_SHADOWED), _spans_its_ends),
    "compaction/summary": both(
        both(
            Shape(
                compactionId=name,
                summary=blocks,
                provider=name,
                model=name,
                sourceCommandId=Maybe(name),
                maxTokens=Maybe(count),
                usage=Maybe(usage),
                rawOutput=Maybe(blocks),
                llmStreamCall=Maybe(true),
                **_SHADOWED,
            ),
            _spans_its_ends,
        ),
        _explains_raw_output,
    ),
    "feedback/record": Shape(text=name),
    "goal/change": goal_change,
    "hook/invoked": Shape(
        turn=count,
        point=name,
        dialect=one_of("claude-code", "codex"),
        handlerId=name,
        matcher=Maybe(text),
    ),
    "hook/result": Shape(
        turn=count,
        point=name,
        handlerId=name,
        decision=name,
        durationMs=number,
        exitCode=Maybe(integer),
        stderrSummary=Maybe(text),
    ),
    "llm/retry": both(
        Shape(
            retryId=name,
            provider=name,
            mode=one_of("normal", "always"),
            policyKey=name,
            retry=positive,
            delayMs=number,
            failure=_END_ERROR,
            maxRetries=Maybe(positive),
            **_PLACE,
        ),
        _limits_retries,
    ),
    "llm/retry-started": Shape(retryId=name, retry=positive, **_PLACE),
    "model/selection": Shape(provider=name, model=name, reasoningEffort=Maybe(name)),
    "permission/preset": Shape(preset=name),
    "plan/mode": Shape(active=boolean),
    "request/context": Shape(provider=name, model=name, contextWindow=Maybe(positive)),
    "request/header": both(
        Shape(
            header=_HEADER,
            reason=one_of("initial", "resume", "change", "series"),
            startsSeries=Maybe(true),
        ),
        _has_defaulted_values,
    ),
    "sandbox/mode": Shape(
        mode=one_of("read-only", "workspace-write", "danger-full-access"),
        source=Maybe(one_of("delegation")),
    ),
    "schedule/change": _SCHEDULE_CHANGE,
    "session/title": Shape(
        title=name,
        messageSeqs=list_of(count),
        source=variants(
            "kind",
            {"fallback": _BARE, "user": _BARE, "provider": Shape(kind=text, provider=name)},
        ),
    ),
    "session/title-llm-request": Shape(
        titleProvider=name,
        messageSeqs=_SEQS,
        route=_ROUTE,
        system=text,
        messages=list_of(title_message),
        maxTokens=positive,
    ),
    "step/start": Shape(**_STEP),
    "step/end": Shape(**_PLACE),
    "subagent/descriptor": _DESCRIPTOR,
    "subagent/model-selection-policy": Shape(allowedModels=list_of(_ROUTE, least=1)),
    "team/member": Shape(member=_MEMBER, **_TEAM),
    "team/message/delivered": Shape(messageId=name, targetId=name, **_TEAM),
    "team/message/queued": Shape(message=_QUEUED, **_TEAM),
    "team/task": Shape(task=_TASK, **_TEAM),
    "todo/write": Shape(
        todos=list_of(Shape(content=text, status=one_of("pending", "in_progress", "completed")))
    ),
    "tool-workflow/agent-start": Shape(
        runId=name, seq=positive, label=text, childId=name, phase=Maybe(text)
    ),
    "tool-workflow/agent-end": Shape(
        runId=name, seq=positive, outcome=one_of("completed", "failed", "cancelled")
    ),
    "tool-workflow/run-start": Shape(runId=name, name=name),
    "tool-workflow/run-end": Shape(
        runId=name, stopReason=one_of("completed", "cancelled", "error")
    ),
    "tool/call": Shape(callId=name, name=name, arguments=text, **_PLACE),
    "tool/code-dispatch": Shape(isError=boolean, content=blocks, **_CALL),
    "tool/code-dispatch-start": Shape(**_CALL),
    "tool/result": both(
        Shape(
            message=result_message,
            error=Maybe(Shape(name=name, code=name)),
            meta=Maybe(anything),
            **_PLACE,
        ),
        _is_error_flagged,
    ),
    "turn/start": Shape(turn=count),
    "turn/end": Shape(turn=count, reason=_end_reason),
    "user/message": user_message,
    "web/deepseek-search-llm-request": Shape(endpoint=name, apiVersion=name, body=_SEARCH_BODY),
}

_ANSWER: Final[dict[str, Check | Maybe]] = {
    "message": assistant_message,
    "usage": Maybe(usage),
    "interrupted": Maybe(true),
    **_STEP,
}
_DELIVERED: Final[dict[str, Check | Maybe]] = {"sessionId": anything, "throughSeq": anything}

_ONLY_0: Final[dict[str, Check]] = {
    "assistant/message": Shape(**_ANSWER),
    "session-log-deepseek/delivery-accepted": Shape(**_DELIVERED),
    "session/end-seed": Shape(),
}
_ONLY_1: Final[dict[str, Check]] = {
    **_ONLY_0,
    "session-log-deepseek/delivery-accepted": Shape(
        sessionFormatVersion=Maybe(count), **_DELIVERED
    ),
}
_ONLY_2: Final[dict[str, Check]] = {
    **_ONLY_1,
    "assistant/message": Shape(stream=stream, **_ANSWER),
    "assistant/attempt": Shape(stream=stream, **_STEP),
    "session/end-seed": Shape(inherited=Maybe(true)),
    "feedback/message-put": Shape(sessionId=name, item=mapping),
    "feedback/message-delete": Shape(sessionId=name, messageId=name),
}

ADMITTED: Final[tuple[dict[str, Check], ...]] = tuple(
    {**_COMMON, **own} for own in (_ONLY_0, _ONLY_1, _ONLY_2)
)
"""By generation 0 to 2: the event types and the shape of their data (chunk events aside)."""

_ENVELOPE: Final = frozenset(
    ("type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs", "ignorable")
)


def check_envelope(row: Row) -> None:
    """Refuse a row whose own keys are not those of an event of generation 0 or 1.

    Raises:
        MigrationRefusedError: They are not.
    """
    if len(row) == 4 and row.get("data").__class__ is dict and row.get("time").__class__ is int:
        return
    if (
        row.get("data").__class__ is not dict
        or not integer(row.get("time"))
        or not row.keys() <= _ENVELOPE
        or row.get("ignorable", True) is not True
    ):
        raise MigrationRefusedError(f"the row at {row.get('seq')} is no event")


def check_event(row: Row, generation: int) -> None:
    """Refuse an event that no later generation has a form for.

    Args:
        row: With a sound envelope.
        generation: 0 to 2; which table holds.

    Raises:
        MigrationRefusedError: Its type is unknown or its data has not the type's shape.
    """
    kind = row["type"]
    shape = ADMITTED[generation].get(kind)
    if shape is None:
        raise MigrationRefusedError(f"the event type {kind!r} at {row['seq']} is unknown")
    if not shape(row["data"]):
        raise MigrationRefusedError(f"the data of {kind} at {row['seq']} is malformed")

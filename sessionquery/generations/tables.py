"""Which event types the old generations know, and the keys of their data (as data).

`TABLE_A` serves generations 0 to 2, `TABLE_B_TYPES` generation 3. Each entry reads
``type: "required keys | optional keys"``; nothing else may stand in ``data``.
"""

from __future__ import annotations

from sessionquery.generations.values import Keys, keys
from sessionquery.rows import SURFACE_TYPES

_COMMON = {
    "agent-preset/selected": "agentPreset",
    "agent/inbox/spliced": "target start inserted | removedCount outcome",
    "approval/asked": "id toolName | callId reason",
    "approval/decided": "id outcome",
    "approval/policy": "policy | source",
    "command/done": "commandId kind | text sourceEventSeq",
    "command/run": "commandId name source | args",
    "compaction/start": "compactionId turn | sourceCommandId",
    "compaction/end": "compactionId turn | sourceCommandId error",
    "compaction/prune": "shadowedRange shadowedSeqs shadowedTokenCount",
    "compaction/summary": (
        "compactionId summary shadowedRange shadowedSeqs shadowedTokenCount provider model"
        " | sourceCommandId maxTokens usage rawOutput llmStreamCall"
    ),
    "feedback/record": "text",
    "goal/change": (
        "kind version operation | goal roundsStarted createdAt updatedAt cleared clearedAt"
    ),
    "hook/invoked": "turn point dialect handlerId | matcher",
    "hook/result": "turn point handlerId decision durationMs | exitCode stderrSummary",
    "llm/retry": ("retryId turn step provider mode policyKey retry delayMs failure | maxRetries"),
    "llm/retry-started": "retryId turn step retry",
    "model/selection": "provider model | reasoningEffort",
    "permission/preset": "preset",
    "plan/mode": "active",
    "request/context": "provider model | contextWindow",
    "request/header": "header reason | startsSeries",
    "sandbox/mode": "mode | source",
    "schedule/change": "version operation | schedule id acceptedAt",
    "session/title": "title messageSeqs source",
    "session/title-llm-request": ("titleProvider messageSeqs route system messages maxTokens"),
    "step/start": "turn step",
    "step/end": "turn step",
    "subagent/descriptor": (
        "mode version provider"
        " | label agentProvider agentModel agentReasoningEffort persona toolFilter"
    ),
    "subagent/model-selection-policy": "allowedModels",
    "team/member": "version teamId member",
    "team/message/delivered": "version teamId messageId targetId",
    "team/message/queued": "version teamId message",
    "team/task": "version teamId task",
    "todo/write": "todos",
    "tool-workflow/agent-start": "runId seq label childId | phase",
    "tool-workflow/agent-end": "runId seq outcome",
    "tool-workflow/run-start": "runId name",
    "tool-workflow/run-end": "runId stopReason",
    "tool/call": "turn step callId name arguments",
    "tool/code-dispatch": ("rootCallId parentCallId subCallId name arguments isError content"),
    "tool/code-dispatch-start": "rootCallId parentCallId subCallId name arguments",
    "tool/result": "turn step message | error meta",
    "turn/start": "turn",
    "turn/end": "turn reason",
    "user/message": "role id content source",
    "web/deepseek-search-llm-request": "endpoint apiVersion body",
}

_CHANGED = {
    "assistant/message": ("turn step message | usage interrupted",) * 2
    + ("turn step message stream | usage interrupted",),
    "session-log-deepseek/delivery-accepted": (
        "sessionId throughSeq",
        "sessionId throughSeq | sessionFormatVersion",
        "sessionId throughSeq | sessionFormatVersion",
    ),
    "session/end-seed": ("", "", "| inherited"),
}
"""Entries that differ between generations 0, 1 and 2."""

_ONLY_2 = {
    "assistant/attempt": "turn step stream",
    "feedback/message-put": None,
    "feedback/message-delete": None,
}


def _table(generation: int) -> dict[str, Keys | None]:
    table: dict[str, Keys | None] = {kind: keys(text) for kind, text in _COMMON.items()}
    table.update({kind: keys(texts[generation]) for kind, texts in _CHANGED.items()})
    if generation == 2:
        table.update({kind: keys(text) if text else None for kind, text in _ONLY_2.items()})
    return table


TABLE_A: tuple[dict[str, Keys | None], ...] = tuple(_table(generation) for generation in range(3))
"""By generation 0-2: the admitted types and their data keys (None: any data)."""

TABLE_B_TYPES = (frozenset(TABLE_A[2]) - {"tool/code-dispatch", "tool/code-dispatch-start"}) | {
    "deliverables/presented",
    "image/offload",
    "subagent/catalog",
    "system/message",
    "tool/ptc-dispatch",
    "tool/ptc-dispatch-start",
    "workspace/changes",
}
"""The types that generation 3 knows; others need ``ignorable:true``."""

LOG_TYPES = TABLE_B_TYPES - SURFACE_TYPES
"""Known types outside the surface: no `surfaceOp`, no `sourceEventSeqs`."""

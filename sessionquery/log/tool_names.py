"""Which tools an event calls or answers."""

from __future__ import annotations

from typing import Any

from dsh_memory.sessionquery.js.text import trim
from dsh_memory.sessionquery.model.sessions import Event


class ToolNames:
    """Follows one log's events in order and tells the tools of each event that has text.

    A ``tool/call`` and a ``tool/result`` have one tool; an assistant message that holds nothing
    but tool calls has all of them; every other event none.
    """

    def __init__(self) -> None:
        self._called: dict[Any, str] = {}

    def of(self, event: Event) -> tuple[str, ...]:
        """Return the names for the next event, whose payload is one that text can be taken of."""
        kind = event["type"]
        data = event["data"]
        if kind == "tool/call":
            name: str = data["name"]
            self._called[data["callId"]] = name
            return (name,)
        if kind == "tool/result":
            name = self._called.pop(data["message"].get("toolCallId"), "")
            return (name,) if name else ()
        if kind == "assistant/message":
            return self._of_message(data["message"]["content"])
        return ()

    def _of_message(self, blocks: list[dict[str, Any]]) -> tuple[str, ...]:
        calls = [block for block in blocks if block.get("type") == "tool-call"]
        if not calls:
            return ()
        for block in calls:
            self._called[block.get("id")] = block["name"]
        said = any(block.get("type") == "text" and trim(block["text"]) for block in blocks)
        return () if said else tuple(block["name"] for block in calls)

"""Rules over events that cite others: titles cite messages of people, commands their outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dsh_memory.sessionquery.js.text import is_count
from dsh_memory.sessionquery.rules.messages import (
    TITLE_SOURCE,
    check_message_list,
    is_name,
    require,
)


@dataclass(slots=True)
class TitleRules:
    """A title cites the messages of people that it was made from; a user's own cites none."""

    _people: set[int] = field(default_factory=set)

    def said(self, seq: int) -> None:
        """Take in a message of a person."""
        self._people.add(seq)

    def titled(self, data: dict[str, Any]) -> None:
        """Take in a ``session/title``."""
        cited, source = data["messageSeqs"], data["source"]
        require(isinstance(cited, list) and isinstance(source, dict), "has no sources")
        require((not cited) == (source.get("kind") == "user"), "cites messages for a user's title")
        self._cites_people(cited)

    def requested(self, data: dict[str, Any]) -> None:
        """Take in a ``session/title-llm-request``."""
        messages, cited = data["messages"], data["messageSeqs"]
        check_message_list(messages)
        require(
            len(messages) == 1 and messages[0]["source"]["kind"] == TITLE_SOURCE,
            "does not hold the one message made for the title",
        )
        require(isinstance(cited, list) and bool(cited), "cites no messages")
        self._cites_people(cited)

    def _cites_people(self, cited: Any) -> None:
        require(
            all(is_count(seq) and seq in self._people for seq in cited)
            and len(set(cited)) == len(cited),
            "does not cite distinct earlier messages of a person",
        )


@dataclass(slots=True)
class CommandRules:
    """A command runs once, is done only after that, and may cite an earlier event as outcome."""

    _ids: set[str] = field(default_factory=set)
    _events: set[int] = field(default_factory=set)

    def run(self, seq: int, data: dict[str, Any]) -> None:
        """Take in a ``command/run``."""
        identity = data["commandId"]
        require(is_name(identity), "has no command id")
        require(identity not in self._ids, f"runs the command {identity!r} again")
        self._ids.add(identity)
        self._events.add(seq)

    def done(self, seq: int, data: dict[str, Any]) -> None:
        """Take in a ``command/done``."""
        require(data["commandId"] in self._ids, "has no command/run before it")
        if "sourceEventSeq" in data:
            cited = data["sourceEventSeq"]
            require(
                data.get("kind") == "success"
                and is_count(cited)
                and cited < seq
                and cited not in self._events,
                "cites what cannot be the command's outcome",
            )
        self._events.add(seq)

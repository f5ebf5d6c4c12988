"""What a tool is for this server: its declaration, and the one function behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
    from dsh_memory.runtime.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Hints:
    """The annotations of a tool; they say what a call does under the present settings."""

    read_only: bool
    idempotent: bool
    open_world: bool


LOCAL_READ = Hints(read_only=True, idempotent=True, open_world=False)
"""Reads this machine's history and changes nothing."""


UNKNOWN = Hints(read_only=False, idempotent=False, open_world=True)
"""Nothing is promised."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful result: text for the model, and the same as a value of the output schema."""

    text: str
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        parameters: JSON Schema of the arguments, closed.
        result: JSON Schema of `Answer.value`, closed.
        hints: The annotations under given settings.
        run: Answers one call; its arguments are unchecked JSON.
        exclusive: Whether no other call of the server may run meanwhile.
    """

    name: str
    title: str
    description: str
    parameters: dict[str, Any]
    result: dict[str, Any]
    hints: Callable[[Settings], Hints]
    run: Callable[[MemoryWorkflow, Mapping[str, Any]], Awaitable[Answer]]
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Tools that are offered together, with the guidance that only they need."""

    name: str
    tools: tuple[Tool, ...]
    guidance: str | None = None

"""Errors of requests: what the caller asked for is refused before or instead of an answer."""

from __future__ import annotations

from typing import Final

from dsh_memory.runtime.errors import DshMemoryError

INVALID: Final = "REQUEST_INVALID"
"""The request's form or a value in it is refused; nothing was done."""

QUESTION_REQUIRED: Final = "REQUEST_QUESTION_REQUIRED"
"""Enabled Jev and every review need the user's complete question."""

JEV_DISABLED: Final = "REQUEST_JEV_DISABLED"
"""A review was asked for while Jev is off: nothing was filtered that could be reviewed."""

SUBAGENT_SESSION: Final = "REQUEST_SUBAGENT_SESSION"
"""The exact session is a subagent's; only main sessions can be recalled (document 000)."""

ECHO_UNITS: Final = 60
"""How much of a refused value a message repeats."""


class RequestError(DshMemoryError):
    """A refused request; `code` is one of the constants of this module."""

    default_code = INVALID


def clipped(text: str, limit: int = ECHO_UNITS) -> str:
    """Return at most `limit` characters of caller input for a message."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shown(value: object) -> str:
    """Return a short description of a refused value: its kind, and its beginning if it is plain."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {clipped(_number(value))}"
    if isinstance(value, str):
        return f"{clipped(value)!r}" if value else "empty text"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}"


def _number(value: int | float) -> str:
    if isinstance(value, int) and abs(value) >= 10**60:
        return "with more than 60 digits"
    return str(value)


TIMEOUT: Final = "SESSION_QUERY_TIMEOUT"

"""The root of the one error tree, and the errors that belong to no single stage.

Every failure that this program reports on purpose is a `DshMemoryError`. Each package adds its own
family below it: `sessionquery.errors` (``SESSION_QUERY_*``),
`pipeline.shared.errors` (``REQUEST_*``),
`classifier.errors` (``JEV_*``), `runtime.ollama.errors` (``OLLAMA_*``), `exporters.errors`
(``OBSIDIAN_*``); ``CONFIG_*`` and ``CANCELLED`` are defined here.

Only the interfaces turn an error into text, an exit status or a protocol error.
"""

from __future__ import annotations

from typing import Any, ClassVar


class DshMemoryError(Exception):
    """A failure with a stable code.

    Args:
        message: What happened, with the offending value; one or two sentences.
        code: The stable code; a subclass may fix it with `default_code`.
        hint: What to do next, or None when the message already says it.
        retryable: Whether the same call may succeed later without any change by the caller.
    """

    default_code: ClassVar[str] = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code if code is not None else self.default_code
        self.hint = hint
        self.retryable = retryable

    def to_json(self) -> dict[str, Any]:
        """Return ``{code, message, hint, retryable}``, the form that every interface prints."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
        }


class CancelledRunError(DshMemoryError):
    """The caller gave the run up before it was complete; nothing of it counts."""

    default_code = "CANCELLED"


class ConfigError(DshMemoryError):
    """A configuration value, file or write was refused (``CONFIG_*``).

    Args:
        key: The configuration key that is to blame, for editors that mark a field; None when the
            file as a whole, or no single key, is.
        reason: What is wrong with that key's value, without the file, key and value that an editor
            shows anyway; None where the message is all there is.
    """

    default_code = "CONFIG_INVALID"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
        key: str | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint, retryable=retryable)
        self.key = key
        self.reason = reason

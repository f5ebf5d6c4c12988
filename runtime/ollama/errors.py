"""Failures of the managed Ollama service (``OLLAMA_*``)."""

from __future__ import annotations

from typing import Final

from dsh_memory.runtime.errors import DshMemoryError

NOT_INSTALLED: Final = "OLLAMA_NOT_INSTALLED"
RUNTIME_DIRECTORY: Final = "OLLAMA_RUNTIME_DIRECTORY"
START_FAILED: Final = "OLLAMA_START_FAILED"
START_TIMEOUT: Final = "OLLAMA_START_TIMEOUT"
START_CANCELLED: Final = "OLLAMA_START_CANCELLED"
SERVICE_ENDED: Final = "OLLAMA_SERVICE_ENDED"
PROBE_FAILED: Final = "OLLAMA_PROBE_FAILED"
VERSION_TOO_OLD: Final = "OLLAMA_VERSION_TOO_OLD"
VERSION_UNKNOWN: Final = "OLLAMA_VERSION_UNKNOWN"
SHOW_FAILED: Final = "OLLAMA_SHOW_FAILED"
PULL_FAILED: Final = "OLLAMA_PULL_FAILED"
PULL_STALLED: Final = "OLLAMA_PULL_STALLED"
NOT_A_DECISION_MODEL: Final = "OLLAMA_NOT_A_DECISION_MODEL"
CONTEXT_UNKNOWN: Final = "OLLAMA_CONTEXT_UNKNOWN"
CONTEXT_TOO_SMALL: Final = "OLLAMA_CONTEXT_TOO_SMALL"
LOAD_TIMEOUT: Final = "OLLAMA_LOAD_TIMEOUT"

UNMANAGED_HINT: Final = (
    "or manage the server yourself: set jev.manage_ollama to false and jev.context_window"
)


class OllamaError(DshMemoryError):
    """The managed service could not be made ready, or ended."""

    default_code = START_FAILED


def clip(text: str, limit: int = 200) -> str:
    """Return foreign text for a message: one printable line of at most `limit` characters."""
    line = " ".join(text.split())
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"

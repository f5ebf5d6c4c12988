"""The one thing that the classifier needs to know about a model server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A System One endpoint that is ready to score.

    Attributes:
        base_url: The loopback root without a trailing slash, for instance ``http://127.0.0.1:11434``.
        model: The model name as the server knows it, at most 200 characters.
        context_window: The effective window in tokens; the byte budget of a request is derived
            from it (document 003).
    """

    base_url: str
    model: str
    context_window: int

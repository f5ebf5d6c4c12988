"""How an engine is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Settings of the engine (document 002, "configuration"; defaults of ours where they differ).

    Attributes:
        home: The DSH home; logs are below ``home/sessions``.
        index_path: None for the home's file in the user cache, ``":memory:"``, or a path.
        open_at: When the index is opened: ``startup``, ``first-search`` or ``never`` (search off).
        snippet_chars: Snippet length in code points.
        read_window_max: Largest ``before``/``after`` of `read_event`, in events.
        inspect_concurrency: How many logs one batch read opens at once.
        unreadable: ``fail`` (as the original) or ``skip`` (left out and named in the result).
    """

    home: str
    index_path: str | None = None
    open_at: Literal["startup", "first-search", "never"] = "first-search"
    default_limit: int = 20
    max_limit: int = 100
    snippet_chars: int = 240
    read_window_max: int = 50
    inspect_concurrency: int = 4
    unreadable: Literal["fail", "skip"] = "fail"

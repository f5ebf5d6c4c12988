"""The one place through which everything of the history tools passes on its way to a model.

Values become well-formed JSON without characters that a terminal or a log could obey. Failures keep
code, remedy and kind; paths of this machine's store are replaced by a placeholder, and what nobody
planned for is not told at all. A cancellation is no failure: it passes untouched.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.sessionquery.js.text import replace_surrogates
from dsh_memory.sessionquery.model.search import EventPage, SessionPage

HOME_PLACEHOLDER: Final = "$DSH_HOME"
_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def sanitized(value: Any) -> Any:
    """Return a JSON value whose texts hold no lone surrogate, control or direction character.

    Newlines, carriage returns and tabs stay; the others become U+FFFD, so that text keeps its
    length and nothing is hidden.
    """
    if isinstance(value, str):
        return _CONTROLS.sub("\ufffd", replace_surrogates(value))
    if isinstance(value, dict):
        return {sanitized(key): sanitized(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [sanitized(item) for item in value]
    return value


def side_notes(page: SessionPage | EventPage) -> dict[str, Any]:
    """The fields of a result that say what a page of the engine left out or could not use."""
    fields: dict[str, Any] = {}
    if page.diagnostics:
        fields["diagnostics"] = page.diagnostics
    if page.unreadable_sessions:
        fields["unreadable_sessions"] = [
            {
                "path": item.path,
                "code": item.code,
                "reason": item.reason,
                **({} if item.session_id is None else {"session_id": item.session_id}),
            }
            for item in page.unreadable_sessions
        ]
    return fields


@asynccontextmanager
async def model_boundary(home: str) -> AsyncIterator[None]:
    """Let only failures out that a model may read.

    Args:
        home: The store's path, which no message may contain.
    """
    try:
        yield
    except DshMemoryError as error:
        raise _safe(error, home) from error


def _safe(error: DshMemoryError, home: str) -> DshMemoryError:
    hint = None if error.hint is None else _safe_text(error.hint, home)
    return type(error)(
        _safe_text(error.message, home),
        code=error.code,
        hint=hint,
        retryable=error.retryable,
    )


def _safe_text(text: str, home: str) -> str:
    clean = sanitized(text)
    assert isinstance(clean, str)
    return clean.replace(home, HOME_PLACEHOLDER) if len(home) > 1 else clean

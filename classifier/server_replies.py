"""From what a server or the network did to the one error that says so.

Error bodies come as ``{"error": "text"}``, as ``{"error": {code, message, type}}``, as
``{"detail": ...}`` or as plain text, depending on the server; all are read, none is trusted.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from dsh_memory.classifier import errors
from dsh_memory.classifier.errors import JevError, visible
from dsh_memory.runtime.endpoint import Endpoint

_OVERFLOW = re.compile(
    r"prompt .* has \d+ tokens|never truncated|exceed_context_size"
    r"|exceeds? the (available|maximum) context|context (size|length|window)",
    re.IGNORECASE | re.DOTALL,
)
_CONTEXT_SIZE = re.compile(r"expected 1\D{1,3}(\d+)|context size \((\d+) tokens\)")
_CAPABILITY = re.compile(r"does not support|not supported|capabilit|decision model", re.IGNORECASE)


_SMALLEST_WINDOW = 1024  # of `jev.context_window`


class _Response(Protocol):
    """What is read of an HTTP response."""

    @property
    def status_code(self) -> int: ...
    @property
    def content(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


def timed_out(endpoint: Endpoint, seconds: float) -> JevError:
    """Return the error for an answer that was not complete in time."""
    probe = json.dumps(
        {
            "model": endpoint.model,
            "state": "x",
            "questions": {"item_0": {"type": "noul", "instructions": "x"}},
        },
        separators=(",", ":"),
    )
    return JevError(
        errors.JEV_TIMEOUT,
        f"{endpoint.base_url} gave no complete answer within {seconds:g} seconds; the model "
        f"{visible(endpoint.model, 60)!r} may still be loading.",
        hint=(
            "Load it beforehand, then search again: "
            f"`curl -s {endpoint.base_url}/v1/systemone -d {shlex.quote(probe)}`"
        ),
    )


def from_connection(endpoint: Endpoint, error: BaseException) -> JevError:
    """Return the error for a request that got no HTTP response."""
    causes = list(_causes(error))
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return JevError(
            errors.JEV_CONNECTION_REFUSED,
            f"Nothing listens at {endpoint.base_url}: the connection was refused.",
        )
    reason = next((str(cause) for cause in reversed(causes) if str(cause)), type(error).__name__)
    return JevError(
        errors.JEV_CONNECTION_FAILED,
        f"The connection to {endpoint.base_url} failed before a complete answer arrived: "
        f"{visible(reason, 120)}",
    )


def from_status(endpoint: Endpoint, response: _Response) -> JevError:
    """Return the error for a response with any other status than 200."""
    status = response.status_code
    text, kind, is_json = _error_text(response.content)
    said = f" (HTTP {status}: {visible(text)})" if text.strip() else f" (HTTP {status})"
    where = endpoint.base_url
    model = repr(visible(endpoint.model, 60))
    if 300 <= status < 400:
        target = visible(response.headers.get("location", "nowhere"), 80)
        return JevError(
            errors.JEV_REDIRECT, f"{where} redirects to {target} (HTTP {status}); not followed."
        )
    if status == 404:
        return _not_found(where, endpoint.model, said, text, kind, is_json)
    if status in (400, 422, 501):
        if _OVERFLOW.search(kind) or _OVERFLOW.search(text):
            return JevError(
                errors.JEV_CONTEXT_OVERFLOW,
                f"A request within the configured window of {endpoint.context_window} is too long "
                f"for {model}{said}.",
                hint=_smaller_window(text),
            )
        if not text.startswith("question ") and _CAPABILITY.search(text):
            return JevError(errors.JEV_NO_DECISION_MODEL, f"{model} is no decision model{said}.")
    code, what = _BY_STATUS.get(status, _by_class(status))
    return JevError(code, what.format(where=where) + said + ".")


_BY_STATUS: Mapping[int, tuple[str, str]] = {
    400: (errors.JEV_REQUEST_REJECTED, "{where} rejects the request"),
    401: (errors.JEV_FORBIDDEN, "{where} wants credentials"),
    403: (errors.JEV_FORBIDDEN, "{where} forbids the request"),
    413: (errors.JEV_BODY_TOO_LARGE, "{where} finds the request too large"),
    422: (errors.JEV_REQUEST_REJECTED, "{where} rejects the request"),
    429: (errors.JEV_BUSY, "{where} is busy"),
    499: (errors.JEV_REQUEST_CANCELLED, "{where} cancelled the request"),
    503: (errors.JEV_BUSY, "{where} is busy"),
}


def _by_class(status: int) -> tuple[str, str]:
    if status >= 500:
        return errors.JEV_SERVER_FAILED, "{where} failed while scoring"
    return errors.JEV_HTTP_STATUS, "{where} answered with an unexpected status"


def _not_found(where: str, name: str, said: str, text: str, kind: str, is_json: bool) -> JevError:
    if not is_json:
        return JevError(
            errors.JEV_SERVER_TOO_OLD,
            f"{where} has no System One endpoint; the server is too old{said}.",
        )
    if kind and "model" not in text.lower():
        return JevError(errors.JEV_NO_ENDPOINT, f"{where} has no System One endpoint{said}.")
    return JevError(
        errors.JEV_MODEL_MISSING,
        f"{where} does not have the model {visible(name, 60)!r}{said}.",
        hint=f"Run `ollama pull {shlex.quote(visible(name, 60))}`, or name a model that is there: "
        "`dsh-memory config set jev.model NAME`.",
    )


def _smaller_window(text: str) -> str | None:
    """Return the remedy with the context size that the server names, if it names one."""
    match = _CONTEXT_SIZE.search(text)
    if match is None:
        return None
    size = int(match[1] or match[2])
    if size < _SMALLEST_WINDOW:
        return (
            f"The server runs the model with a context of {size}; at least {_SMALLEST_WINDOW} is "
            "needed. Start it with a larger one (OLLAMA_CONTEXT_LENGTH)."
        )
    return (
        "The model's context is smaller than jev.context_window says: "
        f"`dsh-memory config set jev.context_window {size}`."
    )


def _error_text(content: bytes) -> tuple[str, str, bool]:
    """Return the server's words, the kind of its error, and whether the body is a JSON object.

    The kind is the `type` of an error object, ``detail`` for that form, and empty otherwise.
    """
    text = content.decode(errors="replace")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text, "", False
    if not isinstance(document, dict):
        return text, "", False
    error = document.get("error")
    if isinstance(error, str):
        return error, "", True
    if isinstance(error, dict):
        message = error.get("message")
        kind = error.get("type")
        words = message if isinstance(message, str) else text
        return words, kind if isinstance(kind, str) and kind else "object", True
    if "detail" in document:
        return _detail_text(document["detail"], text), "detail", True
    return text, "", True


def _detail_text(detail: Any, text: str) -> str:
    if isinstance(detail, str):
        return detail
    if isinstance(detail, dict) and isinstance(detail.get("message"), str):
        return str(detail["message"])
    if isinstance(detail, list) and detail and isinstance(detail[0], dict):
        return str(detail[0].get("msg", text))
    return text


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and everything that led to it, groups included."""
    seen: set[int] = set()
    pending = [error]
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            pending.extend(current.exceptions)
        pending.extend(
            cause for cause in (current.__cause__, current.__context__) if cause is not None
        )

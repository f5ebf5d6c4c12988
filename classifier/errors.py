"""The ``JEV_*`` family: everything that can go wrong while a local decision model scores hits.

One class, one table. The table fixes for every code what the reader can do about it and whether
the same call may succeed later; the place that raises fixes what happened, with the value.

Text that came from a server or a model name is echoed clipped and with control characters made
visible (`visible`), so that no message can move a cursor, recolour a terminal or flood a log.
"""

from __future__ import annotations

import unicodedata
from typing import ClassVar, Final

from dsh_memory.runtime.errors import DshMemoryError

ECHO_LIMIT: Final = 200
"""Code points of foreign text that a message quotes at most."""

JEV_BUDGET: Final = "JEV_BUDGET"
JEV_BUSY: Final = "JEV_BUSY"
JEV_BODY_TOO_LARGE: Final = "JEV_BODY_TOO_LARGE"
JEV_CLOUD_MODEL: Final = "JEV_CLOUD_MODEL"
JEV_CONNECTION_FAILED: Final = "JEV_CONNECTION_FAILED"
JEV_CONNECTION_REFUSED: Final = "JEV_CONNECTION_REFUSED"
JEV_CONTEXT_OVERFLOW: Final = "JEV_CONTEXT_OVERFLOW"
JEV_FORBIDDEN: Final = "JEV_FORBIDDEN"
JEV_HTTP_STATUS: Final = "JEV_HTTP_STATUS"
JEV_INVALID_ANSWER: Final = "JEV_INVALID_ANSWER"
JEV_MODEL_MISSING: Final = "JEV_MODEL_MISSING"
JEV_NO_DECISION_MODEL: Final = "JEV_NO_DECISION_MODEL"
JEV_NO_ENDPOINT: Final = "JEV_NO_ENDPOINT"
JEV_NOT_JSON: Final = "JEV_NOT_JSON"
JEV_QUESTION_REQUIRED: Final = "JEV_QUESTION_REQUIRED"
JEV_REDIRECT: Final = "JEV_REDIRECT"
JEV_REQUEST_CANCELLED: Final = "JEV_REQUEST_CANCELLED"
JEV_REQUEST_REJECTED: Final = "JEV_REQUEST_REJECTED"
JEV_SERVER_FAILED: Final = "JEV_SERVER_FAILED"
JEV_SERVER_TOO_OLD: Final = "JEV_SERVER_TOO_OLD"
JEV_STANDIN_FAILED: Final = "JEV_STANDIN_FAILED"
JEV_STANDIN_MISSING: Final = "JEV_STANDIN_MISSING"
JEV_TIMEOUT: Final = "JEV_TIMEOUT"

HINTS: Final[dict[str, str]] = {
    JEV_BUDGET: (
        "Shorten the question, or raise the window if the model really has a larger one: "
        "`dsh-memory config set jev.context_window N`."
    ),
    JEV_BUSY: "Wait until the server is idle or has loaded its model, then run the search again.",
    JEV_BODY_TOO_LARGE: (
        "The server takes smaller requests than agreed. Lower the window: "
        "`dsh-memory config set jev.context_window N`."
    ),
    JEV_CLOUD_MODEL: (
        "Only local models are used. Pull one and name it: "
        "`ollama pull nimble`, `dsh-memory config set jev.model nimble`."
    ),
    JEV_CONNECTION_FAILED: (
        "Look at the model server's log: it may have stopped, or something that is no model "
        "server listens there."
    ),
    JEV_CONNECTION_REFUSED: (
        "Start the server (`ollama serve`), correct jev.base_url, or search without the filter "
        "(`--no-jev`)."
    ),
    JEV_CONTEXT_OVERFLOW: (
        "The model's context is smaller than jev.context_window says. Set it to the number that "
        "the server names, or lower: `dsh-memory config set jev.context_window N`."
    ),
    JEV_FORBIDDEN: (
        "The server does not accept this address or wants credentials, which are never sent. "
        "Check jev.base_url and the server's own settings."
    ),
    JEV_HTTP_STATUS: "Check that jev.base_url names an Ollama 0.35.0 or newer.",
    JEV_INVALID_ANSWER: (
        "Nothing was filtered, because a doubtful score is not guessed at. Update the server, or "
        "try another decision model (`dsh-memory config set jev.model NAME`)."
    ),
    JEV_MODEL_MISSING: "Run `ollama pull NAME`, or set jev.model to a model that is there.",
    JEV_NO_DECISION_MODEL: (
        "Name a decision model: `ollama pull nimble`, `dsh-memory config set jev.model nimble`."
    ),
    JEV_NO_ENDPOINT: (
        "Check that jev.base_url names a server with a System One endpoint, for instance an Ollama "
        "0.35.0 or newer."
    ),
    JEV_NOT_JSON: (
        "Something else seems to answer at this address. Check that jev.base_url names an Ollama "
        "0.35.0 or newer."
    ),
    JEV_QUESTION_REQUIRED: (
        "Give the complete question (`--question`, or `question` in the request), or search "
        "without the filter (`--no-jev`)."
    ),
    JEV_REDIRECT: "Redirects are never followed. Set jev.base_url to the model server itself.",
    JEV_REQUEST_CANCELLED: "Run the search again; if it repeats, look at the server's log.",
    JEV_REQUEST_REJECTED: (
        "The server does not understand this request. Check that it is an Ollama 0.35.0 or newer."
    ),
    JEV_SERVER_FAILED: (
        "Look at the model server's log (often too little memory); restart it or take a smaller "
        "model."
    ),
    JEV_SERVER_TOO_OLD: (
        "The System One endpoint exists from Ollama 0.35.0 on: update the server "
        "(`ollama --version` tells yours)."
    ),
    JEV_STANDIN_FAILED: "Choose another port (`--port`, 0 takes a free one).",
    JEV_STANDIN_MISSING: "Install the extra: `pip install 'dsh-memory[standin]'`.",
    JEV_TIMEOUT: "Run the search again once the model is loaded.",
}

_RETRYABLE: Final = frozenset(
    {
        JEV_BUSY,
        JEV_CONNECTION_FAILED,
        JEV_CONNECTION_REFUSED,
        JEV_REQUEST_CANCELLED,
        JEV_SERVER_FAILED,
        JEV_TIMEOUT,
    }
)


class JevError(DshMemoryError):
    """Scoring failed; nothing was filtered and nothing was retried.

    Args:
        code: One of the ``JEV_*`` codes of this module.
        message: What happened, with the value; foreign text already made visible.
        hint: A remedy that is more exact than the code's own.

    Attributes:
        request: Number of the model request that failed, from 1, or None when none was sent.
        requests: How many model requests the run consists of, or None.
    """

    default_code: ClassVar[str] = JEV_SERVER_FAILED

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(
            message,
            code=code,
            hint=HINTS[code] if hint is None else hint,
            retryable=code in _RETRYABLE,
        )
        self.request: int | None = None
        self.requests: int | None = None

    def located(self, request: int, requests: int) -> JevError:
        """Return this error naming request `request` of `requests`, counted from 1.

        A run of a single request keeps its message as it is.
        """
        message = self.message
        if requests > 1:
            message = f"Model request {request} of {requests}: {message}"
        error = JevError(self.code, message, hint=self.hint)
        error.request, error.requests = request, requests
        return error


def visible(text: str, limit: int = ECHO_LIMIT) -> str:
    """Return foreign text for a message: one line, inert, at most `limit` code points.

    Control, format, surrogate, line and paragraph separator characters become escapes such as
    ``\\x1b``; white space runs become one blank. What is cut off is marked with ``…``.
    """
    # A long text is cut before it is escaped: nobody waits for a megabyte of error page.
    line = " ".join(text[: limit * 8].split())
    shown = "".join(_escaped(char) for char in line)
    if len(shown) > limit or len(text) > limit * 8:
        return shown[: limit - 1] + "…"
    return shown


def _escaped(char: str) -> str:
    if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return char

"""Which HTTP requests reach the MCP server: this machine's clients that know the token.

Every program and every web site on the machine can send requests to loopback. So the Host must be
ours (a rebound DNS name is not), a stated Origin must be ours, and the bearer token must fit.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import Final

from dsh_memory.runtime.errors import ConfigError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_VARIABLE: Final = "DSH_MEMORY_MCP_TOKEN"
TOKEN_MINIMUM: Final = 16
PATH: Final = "/mcp"


@dataclass(frozen=True, slots=True)
class Token:
    """The bearer token of one server.

    Attributes:
        generated: Whether it was made for this start and has to be told to the user.
    """

    text: str
    generated: bool


def token_from(value: str | None) -> Token:
    """Return the token of the environment variable, or a random one when it is not set.

    Raises:
        ConfigError: ``CONFIG_MCP_TOKEN`` for one that is short or could not be sent in a header.
    """
    if value is None:
        return Token(secrets.token_urlsafe(32), generated=True)
    if len(value) < TOKEN_MINIMUM or not value.isascii() or not value.isprintable() or " " in value:
        raise ConfigError(
            f"{TOKEN_VARIABLE} must be at least {TOKEN_MINIMUM} printable ASCII characters "
            "without blanks.",
            code="CONFIG_MCP_TOKEN",
            hint="Use a long random text, or unset it for a new token at every start.",
        )
    return Token(value, generated=False)


class Guard:
    """ASGI middleware: 403 for a foreign Host or Origin, 404 off the path, 401 without the token.

    Args:
        app: The protected application; it sees only requests for `PATH`.
        port: The port that Host and Origin must name.
        token: What ``Authorization: Bearer`` must carry.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app = app
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._token = token.encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refused(403, "MCP_HOST", "This server answers only under its own address.")
        own = {f"http://{host}" for host in self._hosts}
        if any(origin.lower() not in own for origin in headers.getlist("origin")):
            return _refused(403, "MCP_ORIGIN", "This server refuses requests of web pages.")
        if scope["path"] != PATH:
            return _refused(404, "MCP_PATH", f"The server is at {PATH}.")
        if not self._admits(headers.getlist("authorization")):
            return _refused(
                401,
                "MCP_TOKEN",
                "The bearer token is missing or wrong.",
                {"www-authenticate": 'Bearer realm="dsh-memory"'},
            )
        return None

    def _admits(self, authorizations: list[str]) -> bool:
        if len(authorizations) != 1:
            return False
        scheme, _, given = authorizations[0].partition(" ")
        fits = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token)
        return scheme.lower() == "bearer" and fits


def _refused(
    status: int, code: str, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    error = {"code": code, "message": message, "hint": None, "retryable": False}
    return JSONResponse({"error": error}, status_code=status, headers=headers)

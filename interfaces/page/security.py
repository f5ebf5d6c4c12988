"""Which requests reach the page: this origin, this browser tab, and nobody else.

The page listens on loopback, where every program and every web site of the machine can send
requests. So: the Host must be ours (a rebound DNS name is not), a stated Origin must be ours, and
the interface answers only to the session key, which the tab gets once for the one-time token. The
token travels in the URL's fragment, which browsers never send, and the key in a request header: a
cookie would be shared with every other port of 127.0.0.1, and another site could make the browser
send it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION_HEADER = "X-Dsh-Memory-Session"
MAXIMUM_BODY = 64 * 1024
"""Bytes of a request; a draft of every field is far smaller."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(slots=True)
class Gate:
    """The one-time token and the session key of one server run.

    Attributes:
        port: The port that the server listens on; Host and Origin must name it.
        token: Stands in the printed address; good for one exchange.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _key: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _used: bool = False

    @property
    def url(self) -> str:
        """The address for the user's browser, one-time token included."""
        return f"http://127.0.0.1:{self.port}/#token={self.token}"

    def exchange(self, token: str) -> str | None:
        """Return the session key for the token, the first time; None for a wrong or used one."""
        if self._used or not _equal(token, self.token):
            return None
        self._used = True
        return self._key

    def admits(self, key: str) -> bool:
        """Whether `key` is the session key and has been handed out."""
        return self._used and _equal(key, self._key)

    def is_own_host(self, host: str) -> bool:
        """Whether a Host header names this server by one of its two loopback names."""
        port = "" if self.port == 80 else f":{self.port}"  # browsers leave the default port out
        return host in (f"127.0.0.1{port}", f"localhost{port}")


class GateMiddleware:
    """Refuses foreign requests before anything reads them, and adds the protective headers.

    403 for a foreign Host or Origin, 401 for an interface call without the session key, 413 for a
    body that is too long. The static files need no key: they hold no data.
    """

    def __init__(self, app: ASGIApp, *, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_protected)
            return
        await self._app(scope, receive, send_protected)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._gate.is_own_host(hosts[0]):
            return refused(403, "PAGE_HOST", "This server answers only under its own address.")
        own = f"http://{hosts[0]}"
        writes = scope["method"] not in ("GET", "HEAD")
        origins = headers.getlist("origin")
        if any(origin != own for origin in origins) or (writes and len(origins) != 1):
            return refused(403, "PAGE_ORIGIN", "Only the page itself may use this server.")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return refused(403, "PAGE_ORIGIN", "Only the page itself may use this server.")
        if writes and not _short_enough(headers):
            return refused(413, "PAGE_TOO_LONG", "The request is too long.")
        path = scope["path"]
        if path.startswith("/api/") and path != "/api/session":
            key = headers.get(SESSION_HEADER, "")
            if not self._gate.admits(key):
                return refused(
                    401,
                    "PAGE_SESSION",
                    "This tab has no session with the server.",
                    hint="Run dsh-memory config page again and use the address that it prints.",
                )
        return None


def refused(status: int, code: str, message: str, *, hint: str | None = None) -> JSONResponse:
    """Return an error answer in the form that every interface uses."""
    error = {"code": code, "message": message, "hint": hint, "retryable": False}
    return JSONResponse({"error": error}, status_code=status)


def _short_enough(headers: Headers) -> bool:
    # A body without a stated length (chunked) is refused too: the page never sends one.
    length = headers.get("content-length", "")
    return length.isascii() and length.isdigit() and int(length) <= MAXIMUM_BODY


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())

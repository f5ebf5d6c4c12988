"""The only way from the classifier to the network: one loopback address, fixed headers.

The SDK above builds a request from its arguments and from whatever the environment offers
(``OPENAI_*``, proxies, custom headers). What leaves the process is decided here instead: the
connection goes to the addresses given, never to what a URL or a resolver says, and the headers
are this module's own. Importing it loads `httpx2`; import it only where a request is made.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from typing import Final

import httpx2
from dsh_memory.classifier.errors import JEV_NOT_JSON, JevError

RESPONSE_LIMIT: Final = 1 << 20
"""Bytes of a response at most; a real answer to 64 items has a few thousand."""

_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Authorization": "Bearer ollama",
    # A connection is never reused: between two requests a server may close an idle one, and a
    # request that meets the closing cannot be told from a failed one without a retry.
    "Connection": "close",
    "Content-Type": "application/json",
    "User-Agent": "dsh-memory",
}


class LoopbackTransport(httpx2.AsyncBaseTransport):
    """Sends every request to one server on this machine.

    Args:
        addresses: Numeric ``(address, port)`` pairs, tried in order while a connection is
            refused. The request itself is sent at most once.
    """

    def __init__(self, addresses: Sequence[tuple[str, int]]) -> None:
        self._addresses = tuple(addresses)
        self._inner = httpx2.AsyncHTTPTransport(
            # Plain HTTP only; an empty trust store refuses any TLS and costs no loading time.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            trust_env=False,
            retries=0,
            limits=httpx2.Limits(max_connections=1, max_keepalive_connections=0),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request` with our own headers and return a response of bounded size.

        Raises:
            httpx2.ConnectError: No address accepts a connection.
            JevError: ``JEV_NOT_JSON`` when the response is compressed or too large.
        """
        response = await self._first_reachable(request)
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            await response.aclose()
            raise JevError(JEV_NOT_JSON, "The server compressed its answer although told not to.")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream)
        return response

    async def _first_reachable(self, request: httpx2.Request) -> httpx2.Response:
        failure: httpx2.ConnectError | None = None
        for address, port in self._addresses:
            try:
                return await self._inner.handle_async_request(_readdressed(request, address, port))
            except httpx2.ConnectError as error:
                failure = failure or error
        assert failure is not None
        raise failure

    async def aclose(self) -> None:
        """Close what is still open."""
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._inner:
            received += len(chunk)
            if received > RESPONSE_LIMIT:
                raise JevError(
                    JEV_NOT_JSON, f"The server's answer is larger than {RESPONSE_LIMIT} bytes."
                )
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _readdressed(request: httpx2.Request, address: str, port: int) -> httpx2.Request:
    headers = {
        "Host": request.headers["Host"],
        **_HEADERS,
        "Content-Length": request.headers["Content-Length"],
    }
    return httpx2.Request(
        method=request.method,
        url=request.url.copy_with(scheme="http", host=address, port=port),
        headers=headers,
        stream=request.stream,
        extensions=request.extensions,
    )

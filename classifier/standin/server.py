"""The stand-in System One server: loopback only, Ollama-shaped, for demonstration and tests.

It shows the whole path of a filtered search on a machine without a decision model. It is never a
default, its only model is called ``standin-e5``, and its log says what it is.
"""

from __future__ import annotations

import json
import select
import socket
import socketserver
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from dsh_memory.classifier.errors import JEV_STANDIN_FAILED, JevError
from dsh_memory.classifier.standin import protocol
from dsh_memory.classifier.standin.scoring import EmbeddingScorer, Scorer

_HOSTS: Final = ("127.0.0.1", "::1")
_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class StandinServer(ThreadingHTTPServer):
    """The server, bound but not yet running; `serve_forever` runs it.

    Args:
        port: 0 takes a free one; `server_port` tells which.
        host: ``127.0.0.1`` or ``::1``.
        scorer: The model.

    Raises:
        JevError: ``JEV_STANDIN_FAILED`` for another host or a port that cannot be bound.
    """

    daemon_threads = True

    def __init__(self, port: int, *, host: str, scorer: Scorer) -> None:
        if host not in _HOSTS:
            raise JevError(
                JEV_STANDIN_FAILED,
                f"The stand-in listens only on this machine, not on {host!r}.",
                hint="Use 127.0.0.1 or ::1.",
            )
        self.scorer = scorer
        self.address_family = socket.AF_INET6 if host == "::1" else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise JevError(
                JEV_STANDIN_FAILED, f"The stand-in cannot listen on {host} port {port}: {error}"
            ) from error

    @property
    def url(self) -> str:
        """The base URL for ``jev.base_url``."""
        host = str(self.server_address[0])
        return (
            f"http://[{host}]:{self.server_port}"
            if ":" in host
            else (f"http://{host}:{self.server_port}")
        )

    def server_bind(self) -> None:
        # The base class would ask a resolver for the host's name, which nobody needs.
        socketserver.TCPServer.server_bind(self)
        self.server_name = str(self.server_address[0])
        self.server_port = int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandinServer

    def do_GET(self) -> None:
        if self._foreign_host():
            return
        if self.path == "/":
            self._send(200, b"Ollama is running", "text/plain; charset=utf-8")
        elif self.path == "/api/version":
            self._reply(protocol.Reply(200, {"version": protocol.VERSION}))
        elif self.path == "/api/tags":
            self._reply(protocol.Reply(200, protocol.models()))
        else:
            self._unknown_path()

    def do_POST(self) -> None:
        content = self._content()
        if content is None or self._foreign_host():
            return
        if self.path == "/api/show":
            self._reply(protocol.show(content))
        elif self.path == "/v1/systemone":
            try:
                reply = protocol.answer(content, self.server.scorer, self._gone)
            except protocol.ClientGoneError:
                self.close_connection = True
            else:
                self._reply(reply)
        else:
            self._unknown_path()

    def _content(self) -> bytes | None:
        """Read the body, or refuse one without a length or with too large a one."""
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            length = -1
        if length < 0:
            self.close_connection = True
            self._reply(protocol.Reply(411, {"error": "Content-Length is required"}))
            return None
        if length > protocol.BODY_LIMIT:
            # Read up to a bound, since a client that is still writing would miss the refusal.
            self.rfile.read(min(length, 64 * protocol.BODY_LIMIT))
            self.close_connection = True
            self._reply(protocol.TOO_LARGE)
            return None
        return self.rfile.read(length)

    def _foreign_host(self) -> bool:
        host = self.headers.get("Host", "").lower()
        if host in _NAMES or host.rpartition(":")[0] in _NAMES:
            return False
        self._send(403, b"", "text/plain; charset=utf-8")
        return True

    def _gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        if not readable:
            return False
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _unknown_path(self) -> None:
        self._send(404, b"404 page not found", "text/plain; charset=utf-8")

    def _reply(self, reply: protocol.Reply) -> None:
        body = json.dumps(reply.body, ensure_ascii=False).encode(errors="replace")
        self._send(reply.status, body, "application/json; charset=utf-8")

    def _send(self, status: int, body: bytes, content_type: str) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing for each request; the start is logged by `serve`."""


def serve(
    port: int, host: str = "127.0.0.1", *, ready: Callable[[str], None] | None = None
) -> None:
    """Run the stand-in until it is interrupted (Ctrl-C returns normally).

    Args:
        port: 0 takes a free one.
        host: ``127.0.0.1`` or ``::1``.
        ready: Called with the base URL once requests are accepted. Nothing is printed on stdout.

    Raises:
        JevError: ``JEV_STANDIN_MISSING`` without the extra ``standin``, ``JEV_STANDIN_FAILED``
            when the address cannot be bound.
    """
    scorer = EmbeddingScorer()
    with StandinServer(port, host=host, scorer=scorer) as server:
        print(
            f"{protocol.MODEL} at {server.url}: a stand-in that compares sentence embeddings, no "
            "decision model; for demonstrations and tests only.",
            file=sys.stderr,
            flush=True,
        )
        if ready is not None:
            ready(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return

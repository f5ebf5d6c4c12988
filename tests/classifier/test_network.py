"""What leaves the process, where it goes, and how it ends: real sockets on both sides."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from dsh_memory.classifier.batches import pack
from dsh_memory.classifier.errors import JevError
from dsh_memory.classifier.filter import TIMEOUT, score_texts, warm_up
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.runtime.errors import ConfigError

pytestmark = pytest.mark.anyio

QUESTION = "Which database?"
PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


async def failure(endpoint: Endpoint, **options: Any) -> JevError:
    with pytest.raises(JevError) as caught:
        await score_texts(QUESTION, ["a"], endpoint=endpoint, **options)
    return caught.value


@pytest.fixture
def good_server(
    raw_server: Callable[..., Any],
    http_answer: Callable[..., bytes],
    scored: Callable[..., dict[str, Any]],
) -> Any:
    return raw_server(lambda exchange, _: http_answer(scored(exchange.json)))


async def test_the_budgeted_bytes_and_fixed_headers_are_all_that_is_sent(
    good_server: Any, endpoint_at: Callable[..., Endpoint]
) -> None:
    endpoint = endpoint_at(good_server.url)
    texts = ['quotes " and \\', "größer 模型 😀", "\x00\x1b\n"]
    await score_texts(QUESTION, texts, endpoint=endpoint)
    (exchange,) = good_server.exchanges
    assert exchange.body == pack(QUESTION, texts, endpoint)[0].content
    assert exchange.head.splitlines()[0] == "POST /v1/systemone HTTP/1.1"
    assert {name.lower(): value for name, value in exchange.headers.items()} == {
        "host": f"127.0.0.1:{good_server.port}",
        "accept": "application/json",
        "accept-encoding": "identity",
        "authorization": "Bearer ollama",
        "connection": "close",
        "content-length": str(len(exchange.body)),
        "content-type": "application/json",
        "user-agent": "dsh-memory",
    }


async def test_lone_surrogates_are_sent_as_replacement_characters(
    good_server: Any, endpoint_at: Callable[..., Endpoint]
) -> None:
    await score_texts("why \udcff", ["text \ud800"], endpoint=endpoint_at(good_server.url))
    (exchange,) = good_server.exchanges
    assert exchange.json["state"]["question"] == "why \ufffd"
    assert exchange.json["questions"]["item_0"]["instructions"].endswith("text \ufffd")


HOSTILE_ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-real-secret",
    "OPENAI_ADMIN_KEY": "sk-admin-secret",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_ORG_ID": "org-secret",
    "OPENAI_PROJECT_ID": "proj-secret",
    "OPENAI_WEBHOOK_SECRET": "whsec",
    "OPENAI_CUSTOM_HEADERS": (
        "X-Evil: yes\nAuthorization: Bearer stolen\nX-Stainless-Raw-Response: stream\nHost: evil\n"
        "Content-Type: multipart/form-data\nX-Bad: gr\u00fc\u00df\u6a21"
    ),
    "OPENAI_LOG": "debug",
    "OLLAMA_HOST": "http://127.0.0.1:9",
    "OLLAMA_API_KEY": "ollama-secret",
    "SSL_CERT_FILE": "/nonexistent/certificates.pem",
    "SSLKEYLOGFILE": "/nonexistent/keys.log",
}

SCRIPT = """
import json, sys, anyio
from dsh_memory.classifier.filter import score_texts
from dsh_memory.runtime.endpoint import Endpoint

async def main():
    endpoint = Endpoint(sys.argv[1], "nimble", 8192)
    outcome = await score_texts("Which database?", ["a", "b"], endpoint=endpoint)
    print(json.dumps(outcome.scores))

anyio.run(main)
"""


async def scored_in_a_child(url: str, environment: dict[str, str]) -> tuple[str, str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.lower().endswith("_proxy") and not name.startswith("OPENAI_")
    }
    result = await anyio.run_process(
        [sys.executable, "-c", SCRIPT, url], env=clean | environment, stderr=subprocess.PIPE
    )
    return result.stdout.decode(), result.stderr.decode()


async def test_nothing_in_the_environment_changes_a_request(
    good_server: Any, raw_server: Callable[..., Any]
) -> None:
    proxy = raw_server(lambda exchange, _: b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
    proxies = dict.fromkeys(PROXY_NAMES, proxy.url) | {"NO_PROXY": "", "no_proxy": ""}
    plain = await scored_in_a_child(good_server.url, {})
    hostile = await scored_in_a_child(good_server.url, HOSTILE_ENVIRONMENT | proxies)
    assert plain == hostile == ("[0.7, 0.7]\n", "")
    first, second = good_server.exchanges
    assert first == second
    assert proxy.connections == 0


async def test_a_proxy_of_an_unknown_scheme_is_not_even_read(good_server: Any) -> None:
    proxies = dict.fromkeys(PROXY_NAMES, "quic://127.0.0.1:9")
    assert (await scored_in_a_child(good_server.url, proxies))[0] == "[0.7, 0.7]\n"


async def test_the_sdk_logs_nothing(
    good_server: Any, endpoint_at: Callable[..., Endpoint], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    await score_texts(QUESTION, ["a"], endpoint=endpoint_at(good_server.url))
    logged = [record.name.partition(".")[0] for record in caplog.records]
    assert not set(logged) & {"openai", "httpx2", "httpcore2"}


@pytest.fixture
def resolver_to_elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A resolver that sends every name to 127.0.0.2 and notes which names were asked."""
    asked: list[str] = []
    genuine = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if name.replace(".", "").isdigit() or ":" in name:
            return genuine(host, port, *rest, **more)
        asked.append(name)
        return genuine("127.0.0.2", port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


async def test_localhost_is_only_ever_this_machine(
    good_server: Any, endpoint_at: Callable[..., Endpoint], resolver_to_elsewhere: list[str]
) -> None:
    endpoint = endpoint_at(f"http://localhost:{good_server.port}")
    outcome = await score_texts(QUESTION, ["a"], endpoint=endpoint)
    assert outcome.scores == (0.7,)
    assert resolver_to_elsewhere == []
    assert good_server.exchanges[0].headers["Host"] == f"localhost:{good_server.port}"


async def test_a_localhost_that_resolves_elsewhere_is_not_followed_there(
    raw_server: Callable[..., Any],
    endpoint_at: Callable[..., Endpoint],
    resolver_to_elsewhere: list[str],
) -> None:
    elsewhere = raw_server(lambda exchange, _: b"", host="127.0.0.2")
    error = await failure(endpoint_at(f"http://localhost:{elsewhere.port}"))
    assert error.code == "JEV_CONNECTION_REFUSED"
    assert elsewhere.connections == 0
    assert resolver_to_elsewhere == []


async def test_localhost_falls_back_to_ipv6(
    raw_server: Callable[..., Any],
    endpoint_at: Callable[..., Endpoint],
    http_answer: Callable[..., bytes],
    scored: Callable[..., dict[str, Any]],
) -> None:
    try:
        server = raw_server(lambda exchange, _: http_answer(scored(exchange.json)), host="::1")
    except OSError as error:
        pytest.skip(f"no IPv6 loopback here: {error}")
    for url in (f"http://localhost:{server.port}", server.url):
        outcome = await score_texts(QUESTION, ["a"], endpoint=endpoint_at(url))
        assert outcome.scores == (0.7,)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.invalid:80",
        "http://127.0.0.1:1@example.invalid",
        "https://127.0.0.1:1",
        "http://127.1:1",
        "http://localhost.:1",
        "http://127.0.0.1:1/v1",
        "http://127.0.0.1:99999",
        "http://[::ffff:127.0.0.1]:1",
    ],
)
async def test_anything_but_a_loopback_root_is_refused_before_a_connection(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await score_texts(QUESTION, ["a"], endpoint=Endpoint(url, "nimble", 8192))
    assert caught.value.code == "CONFIG_BASE_URL"


async def test_nothing_is_connected_to_but_the_configured_address(
    raw_server: Callable[..., Any],
    endpoint_at: Callable[..., Endpoint],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guard under the event loop sees every address, also with a redirect and a proxy about."""
    other = raw_server(lambda exchange, _: b"")
    redirect = f"HTTP/1.1 307 T\r\nLocation: {other.url}/\r\nContent-Length: 0\r\n\r\n".encode()
    server = raw_server(lambda exchange, _: redirect)
    for name in PROXY_NAMES:
        monkeypatch.setenv(name, other.url)
    connected: list[Any] = []
    monkeypatch.setattr(
        "asyncio.selector_events.BaseSelectorEventLoop._sock_connect",
        _noting(connected),
    )
    assert (await failure(endpoint_at(server.url))).code == "JEV_REDIRECT"
    assert connected == [("127.0.0.1", server.port)]
    assert other.connections == 0


def _noting(connected: list[Any]) -> Any:
    from asyncio.selector_events import BaseSelectorEventLoop

    genuine = BaseSelectorEventLoop._sock_connect  # type: ignore[attr-defined]

    def connect(loop: Any, future: Any, sock: Any, address: Any) -> Any:
        connected.append(address[:2])
        return genuine(loop, future, sock, address)

    return connect


async def test_a_refused_connection_says_so(endpoint_at: Callable[..., Endpoint]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    for host in ("127.0.0.1", "localhost"):
        error = await failure(endpoint_at(f"http://{host}:{port}"))
        assert error.code == "JEV_CONNECTION_REFUSED"
        assert f"http://{host}:{port}" in error.message
        assert error.hint is not None
        assert "ollama serve" in error.hint


async def test_the_time_limit_is_thirty_seconds() -> None:
    assert TIMEOUT == 30


@pytest.mark.parametrize("kind", ["silent", "head only", "drip"])
async def test_the_time_limit_covers_the_whole_answer(
    raw_server: Callable[..., Any], endpoint_at: Callable[..., Endpoint], kind: str
) -> None:
    done = threading.Event()

    def respond(exchange: Any, connection: socket.socket) -> bytes | None:
        if kind != "silent":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{")
        while kind == "drip" and not done.wait(0.02):
            connection.sendall(b" ")
        return None

    server = raw_server(respond)
    error = await failure(endpoint_at(server.url, model="it's"), timeout=0.5)
    done.set()
    assert error.code == "JEV_TIMEOUT"
    assert "0.5 seconds" in error.message
    assert "may still be loading" in error.message
    assert error.hint is not None
    assert error.hint.startswith("Load it beforehand")
    assert f"curl -s {server.url}/v1/systemone -d '" in error.hint
    assert server.connections == 1


async def test_the_advice_of_a_timeout_is_a_command_that_loads_the_model(
    raw_server: Callable[..., Any], endpoint_at: Callable[..., Endpoint]
) -> None:
    import shlex

    server = raw_server(lambda exchange, _: None)
    error = await failure(endpoint_at(server.url, model='it\'s "odd"'), timeout=0.2)
    assert error.hint is not None
    command = error.hint[error.hint.index("`") + 1 : error.hint.rindex("`")]
    request = json.loads(shlex.split(command)[-1])
    assert request["model"] == 'it\'s "odd"'
    assert request["questions"]["item_0"]["type"] == "noul"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
    ],
    ids=["closed", "cut body", "cut chunk", "ssh", "tls"],
)
async def test_a_broken_answer_is_a_failed_connection(
    raw_server: Callable[..., Any], endpoint_at: Callable[..., Endpoint], answer: bytes
) -> None:
    server = raw_server(lambda exchange, _: answer)
    error = await failure(endpoint_at(server.url))
    assert error.code == "JEV_CONNECTION_FAILED"
    assert server.connections == 1


async def test_an_endless_answer_is_cut_off(
    raw_server: Callable[..., Any], endpoint_at: Callable[..., Endpoint]
) -> None:
    def respond(exchange: Any, connection: socket.socket) -> bytes | None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b" " * 65536)

    server = raw_server(respond)
    error = await failure(endpoint_at(server.url))
    assert error.code == "JEV_NOT_JSON"
    assert "larger than" in error.message


async def test_a_compressed_answer_is_not_unpacked(
    raw_server: Callable[..., Any], endpoint_at: Callable[..., Endpoint]
) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"
    server = raw_server(lambda exchange, _: answer)
    assert (await failure(endpoint_at(server.url))).code == "JEV_NOT_JSON"


async def test_an_uncompressed_answer_may_say_so_in_any_case(
    raw_server: Callable[..., Any],
    endpoint_at: Callable[..., Endpoint],
    scored: Callable[..., dict[str, Any]],
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: Identity\r\n\r\n"
    server = raw_server(lambda exchange, _: head + json.dumps(scored(exchange.json)).encode())
    outcome = await score_texts(QUESTION, ["a"], endpoint=endpoint_at(server.url))
    assert outcome.scores == (0.7,)


async def test_an_old_http_version_and_a_body_without_length_are_fine(
    raw_server: Callable[..., Any],
    endpoint_at: Callable[..., Endpoint],
    scored: Callable[..., dict[str, Any]],
) -> None:
    server = raw_server(
        lambda exchange, _: b"HTTP/1.0 200 OK\r\n\r\n" + json.dumps(scored(exchange.json)).encode()
    )
    outcome = await score_texts(QUESTION, ["a"], endpoint=endpoint_at(server.url))
    assert outcome.scores == (0.7,)


@pytest.mark.parametrize("phase", ["no answer", "half an answer"])
async def test_cancellation_closes_the_connection_at_once(
    raw_server: Callable[..., Any], endpoint_at: Callable[..., Endpoint], phase: str
) -> None:
    arrived = threading.Event()

    def respond(exchange: Any, connection: socket.socket) -> bytes | None:
        if phase == "half an answer":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
        arrived.set()
        return None

    server = raw_server(respond)
    ended: list[BaseException] = []

    async def run() -> None:
        try:
            await score_texts(QUESTION, ["a"], endpoint=endpoint_at(server.url))
        except BaseException as error:
            ended.append(error)
            raise

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.to_thread.run_sync(arrived.wait, 20)
        started = time.monotonic()
        group.cancel_scope.cancel()
    assert isinstance(ended[0], anyio.get_cancelled_exc_class())
    assert await anyio.to_thread.run_sync(server.closed_by_client.wait, 10)
    assert time.monotonic() - started < 10
    assert server.connections == 1


async def test_warming_up_is_one_minimal_request(
    good_server: Any, endpoint_at: Callable[..., Endpoint]
) -> None:
    await warm_up(endpoint_at(good_server.url, context_window=1024), timeout=5)
    (exchange,) = good_server.exchanges
    assert list(exchange.json["questions"]) == ["item_0"]
    assert len(exchange.body) < 500


async def test_warming_up_has_its_own_time_limit(
    raw_server: Callable[..., Any], endpoint_at: Callable[..., Endpoint]
) -> None:
    server = raw_server(lambda exchange, _: None)
    with pytest.raises(JevError) as caught:
        await warm_up(endpoint_at(server.url), timeout=0.2)
    assert caught.value.code == "JEV_TIMEOUT"

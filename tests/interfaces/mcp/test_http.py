"""The server over HTTP: who gets in, and several clients at once."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

READ = {"session_id": "tp-0002-storage-decision", "seq": 3}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@dataclass
class WebServer:
    process: Any
    url: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {
            "authorization": f"Bearer {self.token}",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2025-06-18",
        }


def opened(process: Any) -> WebServer:
    told = process.stderr.readline().decode(), process.stderr.readline().decode()
    url = re.search(r"http://\S+", told[0])
    token = re.search(r"Bearer (\S+)", told[1])
    assert url
    assert token
    return WebServer(process, url.group(), token.group(1))


@pytest.fixture(scope="module")
def web(new_place: Callable[[Path], Any], tmp_path_factory: Any) -> Iterator[WebServer]:
    """One server for all tests that leave it running."""
    place = new_place(tmp_path_factory.mktemp("web") / "user")
    words = ("--http", "--tools", "memory,query", "--cwd", "/home/mira/notes")
    with place.start(place.command(*words)) as process:
        yield opened(process)
        process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"authorization": None}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Basic {token}"}, 401),
        ({"authorization": "bearer {token}"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:{port}"}, 403),
        ({"host": "127.0.0.1:1"}, 403),
        ({"host": "localhost:{port}"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"origin": "http://127.0.0.1:{port}"}, 200),
    ],
)
def test_only_own_address_own_origin_and_the_token_get_in(
    web: WebServer, changes: dict[str, str | None], status: int
) -> None:
    port = web.url.split(":")[2].split("/")[0]
    headers = dict(web.headers)
    for name, value in changes.items():
        if value is None:
            del headers[name]
        else:
            headers[name] = value.format(port=port, token=web.token)
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    answer = httpx.post(web.url, json=initialize, headers=headers, trust_env=False)
    assert answer.status_code == status
    if status == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")
    if status != 200:
        assert web.token not in answer.text


def test_other_paths_and_other_addresses_do_not_exist(web: WebServer) -> None:
    other = web.url.replace("/mcp", "/.well-known/oauth-protected-resource")
    assert httpx.get(other, headers=web.headers, trust_env=False).status_code == 404
    port = int(web.url.split(":")[2].split("/")[0])
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}
    for address in addresses - {"127.0.0.1", "::1"}:
        with pytest.raises(OSError):
            socket.create_connection((address, port), timeout=2).close()


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_two_clients_call_at_the_same_time(web: WebServer, mode: str) -> None:
    results: dict[int, list[Any]] = {1: [], 2: []}

    async def use(number: int) -> None:
        http = httpx_client(web)
        async with (
            http,
            Client(streamable_http_client(web.url, http_client=http), mode=mode) as client,
        ):
            await client.list_tools()

            async def call(name: str, arguments: dict[str, Any]) -> None:
                results[number].append(await client.call_tool(name, arguments))

            async with anyio.create_task_group() as calls:
                for _ in range(3):
                    calls.start_soon(call, "fetch_session", READ)
                    calls.start_soon(call, "recall_memory", {"query": "database"})
                    calls.start_soon(call, "session_search", {"query": "database"})

    async with anyio.create_task_group() as clients:
        clients.start_soon(use, 1)
        clients.start_soon(use, 2)
    texts = [sorted(result.content[0].text for result in results[number]) for number in (1, 2)]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 9
    assert not any(result.is_error for result in results[1] + results[2])


def httpx_client(web: WebServer) -> Any:
    from mcp.shared._httpx_utils import create_mcp_http_client

    return create_mcp_http_client(headers={"authorization": f"Bearer {web.token}"})


def test_the_token_can_come_from_the_environment(line_client: Callable[..., Any]) -> None:
    token = "a-long-token-of-the-user"
    process = line_client("--http", DSH_MEMORY_MCP_TOKEN=token).process
    url = process.stderr.readline().decode().split()[-1]
    assert token not in process.stderr.readline().decode()
    headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    assert httpx.post(url, json=PING, headers=headers, trust_env=False).status_code != 401
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143


@pytest.mark.parametrize(
    "token", ["", "short", "sixteen letters and blanks", "schlüssel-mit-umlaut"]
)
def test_a_useless_token_is_refused(place: Any, token: str) -> None:
    process = place.start(place.command("--http"), DSH_MEMORY_MCP_TOKEN=token)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "CONFIG_MCP_TOKEN" in err.decode()
    assert out == b""


def test_with_json_the_address_is_one_line_on_stdout(line_client: Callable[..., Any]) -> None:
    process = line_client("--http", "--json").process
    told = json.loads(process.stdout.readline())
    assert told["url"].startswith("http://127.0.0.1:")
    assert len(told["token"]) > 30


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_taken_port_is_an_error(place: Any, taken_port: int) -> None:
    process = place.start(place.command("--http", "--port", str(taken_port)))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "MCP_PORT" in err.decode()


def test_it_stops_while_clients_are_connected(line_client: Callable[..., Any]) -> None:
    web = opened(line_client("--http").process)
    with httpx.Client(headers=web.headers, trust_env=False) as client:
        initialize = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        }
        answer = client.post(web.url, json=initialize)
        session = {"mcp-session-id": answer.headers["mcp-session-id"]}
        with client.stream("GET", web.url, headers=session) as stream:
            assert stream.status_code == 200
            web.process.send_signal(signal.SIGINT)
            assert web.process.wait(20) == 130


def test_unfinished_and_foreign_requests_leave_no_trace_on_stderr(place: Any) -> None:
    with place.start(place.command("--http")) as process:
        web = opened(process)
        port = httpx.URL(web.url).port
        garbage = socket.create_connection(("127.0.0.1", port))
        garbage.sendall(b"\x16\x03\x01 no HTTP\r\n\r\n")
        assert garbage.recv(100).startswith(b"HTTP/1.1 400")
        unfinished = socket.create_connection(("127.0.0.1", port))
        head = "".join(f"{name}: {value}\r\n" for name, value in web.headers.items())
        unfinished.sendall(
            f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{head}"
            "content-type: application/json\r\ncontent-length: 1000\r\n"
            "expect: 100-continue\r\n\r\n".encode()
        )
        assert unfinished.recv(100).startswith(b"HTTP/1.1 100")  # it waits for the rest now
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
        garbage.close()
        unfinished.close()
        assert process.stderr.read() == b""

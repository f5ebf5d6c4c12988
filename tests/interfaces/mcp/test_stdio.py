"""The server as a process: what is on its streams, and when it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

READ = {"session_id": "tp-0002-storage-decision", "seq": 3}

CHATTY = """
import os, subprocess, sys, warnings
print("stray line while starting")
from dsh_memory.runtime.config import layers as config
real = config.load

def load(**options):
    print("stray line of a library")
    os.write(1, b"stray bytes\\n")
    subprocess.run(["echo", "stray child"])
    warnings.warn("stray warning")
    return real(**options)

config.load = load
from dsh_memory.interfaces.mcp import memory_set

async def fails(memory, arguments):
    raise RuntimeError("secret detail")

memory_set._recall = fails
from dsh_memory.interfaces.cli.main import main
sys.argv = ["dsh-memory", "mcp"]
main()
"""


@pytest.mark.anyio
async def test_the_sdks_own_client_can_use_it(place: Any) -> None:
    command = place.command()
    parameters = StdioServerParameters(
        command=command[0], args=command[1:], env=place.environment(), cwd=place.folder
    )
    for mode in ("auto", "legacy"):
        async with Client(stdio_client(parameters), mode=mode) as client:
            result = await client.call_tool("fetch_session", READ)
            assert not result.is_error
            assert "PostgreSQL 16 plus TimescaleDB" in result.content[0].text


def test_stdout_carries_the_protocol_and_nothing_else(line_client: Callable[..., Any]) -> None:
    client = line_client(command=[sys.executable, "-c", CHATTY.replace("print", "0 and print", 1)])
    client.initialize()
    client.call(1, "fetch_session", **READ)
    failed = client.call(2, "recall_memory", query="x")
    client.process.stdin.close()
    rest = client.process.stdout.read().decode()
    assert all("jsonrpc" in json.loads(line) for line in rest.splitlines())
    assert failed["isError"]
    assert failed["content"][0]["text"].startswith("INTERNAL: Unexpected RuntimeError.")
    assert "secret detail" not in json.dumps(failed)
    told = client.process.stderr.read().decode()
    for stray in ("line of a library", "bytes", "child", "warning"):
        assert f"stray {stray}" in told
    assert "secret detail" in told


def test_a_client_that_closes_its_end_stops_the_server(line_client: Callable[..., Any]) -> None:
    client = line_client()
    client.initialize()
    client.process.stdin.close()
    assert client.process.wait(20) == 0
    assert client.process.stdout.read() == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_while_stdin_stays_open(
    line_client: Callable[..., Any], number: signal.Signals
) -> None:
    client = line_client()
    client.initialize()
    client.process.send_signal(number)
    assert client.process.wait(20) == 128 + number


def test_a_client_that_stops_reading_ends_it(line_client: Callable[..., Any]) -> None:
    client = line_client()
    client.initialize()
    client.process.stdout.close()
    client.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert client.process.wait(20) == 0


def test_a_closed_connection_ends_a_running_call(
    place: Any, line_client: Callable[..., Any], hanging_model: Any
) -> None:
    place.config.write_text(hanging_model.settings(), "utf-8")
    client = line_client()
    client.initialize()
    arguments = {"query": "database", "question": "Which database?"}
    params = {"name": "recall_memory", "arguments": arguments}
    client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert hanging_model.asked.wait(30)
    client.process.stdin.close()
    assert client.process.wait(20) == 0
    assert hanging_model.left.wait(10)


def test_what_is_no_message_is_answered_and_the_server_goes_on(
    line_client: Callable[..., Any],
) -> None:
    client = line_client()
    client.initialize()
    client.send(b"this is not JSON")
    assert client.receive()["error"]["code"] == -32700
    client.send(b"")
    client.send(b'{"jsonrpc":"2.0","id":7,"method":5}')
    answer = client.receive()
    assert (answer["id"], answer["error"]["code"]) == (7, -32600)
    client.send(b"[" + b" " * (5 << 20) + b"]")
    assert client.receive()["error"]["code"] == -32700
    assert "TimescaleDB" in client.call(8, "fetch_session", **READ)["content"][0]["text"]


def test_a_request_with_an_odd_id_is_refused_and_not_ignored(
    line_client: Callable[..., Any],
) -> None:
    client = line_client()
    for odd in (None, True, 1.5, [], {}):
        client.send({"jsonrpc": "2.0", "id": odd, "method": "ping"})
        answer = client.receive()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)


def test_odd_cancellations_cancel_nothing_and_end_nothing(
    line_client: Callable[..., Any],
) -> None:
    client = line_client()
    client.initialize()
    for odd in ({}, [1], None, 1.5, True):
        params = {"requestId": odd}
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    assert client.request(1, "ping")["result"] == {}


def test_lone_surrogates_arrive_as_replacement_characters(line_client: Callable[..., Any]) -> None:
    client = line_client()
    client.initialize()
    params = b'{"name":"fetch_session","arguments":{"session_id":"no-\\ud800","seq":0}}'
    client.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}")
    result = client.receive()["result"]
    assert result["isError"]
    assert "no-\ufffd" in result["content"][0]["text"]


def test_messages_are_understood_in_pieces(line_client: Callable[..., Any]) -> None:
    client = line_client()
    client.initialize()
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    for piece in (ping[:9], ping[9:20], ping[20:] + b"\n" + ping.replace(b"1", b"2", 1)):
        client.process.stdin.write(piece)
        client.process.stdin.flush()
    client.send(b"")
    assert {client.receive()["id"], client.receive()["id"]} == {1, 2}


def test_requests_can_come_from_a_file(place: Any) -> None:
    requests = place.folder / "requests"
    requests.write_text('{"jsonrpc":"2.0","id":1,"method":"ping"}\n', "utf-8")
    with requests.open("rb") as source:
        done = subprocess.run(
            place.command(),
            stdin=source,
            capture_output=True,
            env=place.environment(),
            cwd=place.folder,
            timeout=60,
            check=True,
        )
    assert json.loads(done.stdout.splitlines()[0])["id"] == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--tools", "memory,bogus"], "bogus"),
        (["--tools", "query", "--cwd", "relative"], "--cwd must be an absolute directory"),
        (["--port", "8000"], "--port needs --http"),
    ],
)
def test_wrong_options_are_refused(place: Any, words: list[str], told: str) -> None:
    process = place.start(place.command(*words))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert told in err.decode()
    assert out == b""


def test_requests_from_a_pipe_are_answered_after_its_end(place: Any) -> None:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}}
    params["clientInfo"] = {"name": "t", "version": "1"}
    call = {"name": "fetch_session", "arguments": READ}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call},
    ]
    done = subprocess.run(
        place.command(),
        input="".join(json.dumps(line) + "\n" for line in lines).encode(),
        capture_output=True,
        env=place.environment(),
        cwd=place.folder,
        timeout=60,
        check=True,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert len(answers[2]["result"]["tools"]) == 3
    assert "TimescaleDB" in answers[3]["result"]["content"][0]["text"]

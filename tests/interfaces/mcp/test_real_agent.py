"""A real DSH agent, with a scripted model, uses the memory of its own home as documented."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "agents.md"
SCRIPTS = str(Path(sys.executable).parent)


def snippet(name: str) -> str:
    found = re.search(rf"<!-- snippet: {name} -->\n```\w+\n(.*?)```", DOCUMENT.read_text(), re.S)
    assert found, name
    return found.group(1)


class ScriptedModel:
    """The agent's model endpoint: answers each request that offers tools by the next reply.

    A reply is a function of the request. It returns text, or the tool calls to make as
    ``(name, arguments)`` pairs. Requests without tools (titles) get a fixed text.
    """

    def __init__(self, *replies: Any) -> None:
        self.requests: list[dict[str, Any]] = []
        self._replies = list(replies)
        self._lock = Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for event in model.events(request):
                    data = json.dumps(event, ensure_ascii=False)
                    self.wfile.write(f"event: {event['type']}\ndata: {data}\n\n".encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def events(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        with self._lock:
            reply: Any = "A title"
            if request.get("tools"):
                self.requests.append(request)
                reply = self._replies.pop(0)(request)
            number = len(self.requests)
        usage = {"input_tokens": 10, "output_tokens": 5}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m"}
        message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        yield {"type": "message_start", "message": message}
        for index, (block, delta) in enumerate(blocks(reply, number)):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        stop = "end_turn" if isinstance(reply, str) else "tool_use"
        delta = {"stop_reason": stop, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": usage}
        yield {"type": "message_stop"}

    def __enter__(self) -> ScriptedModel:
        self._thread = Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


def blocks(reply: Any, number: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    if isinstance(reply, str):
        yield {"type": "text", "text": ""}, {"type": "text_delta", "text": reply}
        return
    for index, (name, arguments) in enumerate(reply):
        block = {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": name, "input": {}}
        yield block, {"type": "input_json_delta", "partial_json": json.dumps(arguments)}


def last_results(request: dict[str, Any]) -> list[str]:
    """The texts of the tool results in the newest message."""
    return [
        "".join(part["text"] for part in block["content"])
        for block in request["messages"][-1]["content"]
        if block["type"] == "tool_result"
    ]


@pytest.fixture
def runtime() -> list[str]:
    package = pytest.importorskip(
        "deepseek_harness_runtime", reason="the DSH runtime exists for Linux on x86-64 only"
    )
    return list(package.resolve_bundled_launch_args())


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.anyio
async def test_an_agent_recalls_and_reads_its_own_history(place: Any, runtime: list[str]) -> None:
    environment = place.environment(
        DSH_TELEMETRY_MODE="DISABLED",
        DEEPSEEK_API_KEY="unused",
        PATH=os.pathsep.join([SCRIPTS, os.environ["PATH"]]),
    )
    project = place.folder / "project"
    project.mkdir()
    command = [*runtime, "--profile", "headless"]

    def run(*words: str, **changes: str) -> str:
        done = subprocess.run(
            [*command, *words],
            env={**environment, **changes},
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return done.stdout.decode()

    run("--dump-config")  # the first start makes the profile's folder
    patch = place.home / "profiles" / "headless" / "cordis.patch.yml"
    patch.write_text(snippet("dsh"), "utf-8")

    def search(request: dict[str, Any]) -> Any:
        return [("mcp__memory__recall_memory", {"query": "ingest database"})]

    def read(request: dict[str, Any]) -> Any:
        [text] = last_results(request)
        hit = re.search(r"Session (tp-0002-\S+) \| seq (\d+)", text)
        assert hit, text
        arguments = {
            "session_id": hit.group(1),
            "seq": int(hit.group(2)),
            "before": None,
            "after": 8,
        }
        return [("mcp__memory__fetch_session", arguments)]

    with ScriptedModel(search, read, lambda request: "PostgreSQL it was.") as model:
        printed = run("--json", "Which database did we choose?", DEEPSEEK_BASE_URL=model.url)
    offered = {tool["name"] for tool in model.requests[0]["tools"]}
    assert offered >= {
        "mcp__memory__recall_memory",
        "mcp__memory__review_jev_filtered",
        "mcp__memory__fetch_session",
    }
    assert len(model.requests) == 3
    [text] = last_results(model.requests[2])
    assert text.startswith("What follows was recorded in earlier DSH sessions.")
    assert "Session tp-0002-storage-decision | target seq" in text
    assert "the ingest database is PostgreSQL 16 with TimescaleDB" in text
    assert "PostgreSQL it was." in printed

    # What the agent was told is history now, and is recognized as an echo.
    question = {"query": "ingest database", "limit": 50}
    async with Client(place.server().sdk) as client:
        found = (await client.call_tool("recall_memory", question)).structured_content
        echoes = [hit for hit in found["results"] if hit.get("echo")]
        assert [hit["cwd"] for hit in echoes] == [str(project)]
        assert echoes[0]["type"] in ("tool/call", "tool/result")
        within = {"query": "ingest database", "session_id": echoes[0]["session_id"]}
        events = (await client.call_tool("recall_memory", within)).structured_content
        kinds = {hit["type"] for hit in events["results"]}
        assert {"tool/call", "tool/result"} <= kinds
        assert all(hit.get("echo") for hit in events["results"])
        place.config.write_text("[search]\nexclude_echoes = true\n", "utf-8")
        without = (await client.call_tool("recall_memory", question)).structured_content
    assert without["excluded_echoes"] == 1
    assert [hit for hit in without["results"] if hit.get("echo")] == []
    kept = [hit["session_id"] for hit in found["results"] if not hit.get("echo")]
    assert [hit["session_id"] for hit in without["results"]] == kept


@pytest.mark.anyio
async def test_the_other_documented_registrations_start_the_server(place: Any) -> None:
    as_json = json.loads(snippet("json"))["mcpServers"]["memory"]
    as_toml = tomllib.loads(snippet("codex"))["mcp_servers"]["memory"]
    assert as_toml["startup_timeout_sec"] >= 10
    line = re.search(r"claude mcp add memory --env (\S+) -- (.*)", DOCUMENT.read_text("utf-8"))
    assert line
    command, *words = line.group(2).split()
    claude = {"command": command, "args": words, "env": dict([line.group(1).split("=")])}
    for entry in (as_json, as_toml, claude):
        environment = place.environment(PATH=os.pathsep.join([SCRIPTS, os.environ["PATH"]]))
        assert list(entry["env"]) == ["DSH_HOME"]
        parameters = StdioServerParameters(
            command=entry["command"], args=entry["args"], env=environment, cwd=place.folder
        )
        async with Client(stdio_client(parameters), mode="legacy") as client:
            found = await client.call_tool("recall_memory", {"query": "PgBouncer"})
            assert found.structured_content["results"][0]["session_id"].startswith("tp-0004")

"""``dsh-memory mcp``: the tools for agents."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from dsh_memory.interfaces.cli import output
from dsh_memory.interfaces.cli.options import (
    CommonOptions,
    common_options,
    current_directory,
    current_options,
)
from dsh_memory.pipeline.shared.errors import RequestError

if TYPE_CHECKING:
    from dsh_memory.interfaces.mcp.server import MemoryServer

SETS = ("memory", "query", "recall")


@click.command("mcp", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--tools",
    "sets",
    default="memory",
    show_default=True,
    metavar="SET[,SET]",
    help="Which tools: memory, query, recall; several with commas.",
)
@click.option(
    "--cwd",
    metavar="DIR",
    help="The calling agent's directory, for the sets query and recall; . is the current one.",
)
@click.option(
    "--caller-session",
    metavar="ID",
    help="The calling agent's session, for the sets query and recall.",
)
@click.option("--http", is_flag=True, help="Streamable HTTP on 127.0.0.1 instead of stdio.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Port for --http; default a free one.",
)
@common_options
def mcp(
    sets: str, cwd: str | None, caller_session: str | None, http: bool, port: int | None
) -> None:
    """Serve the memory as MCP tools, over stdio or HTTP, until the client leaves.

    With --http the bearer token is that of DSH_MEMORY_MCP_TOKEN, or a new one printed on stderr.
    """
    options = current_options()
    names = _set_names(sets)
    directory = _caller_directory(cwd)
    if port is not None and not http:
        raise RequestError("--port needs --http.", hint="Add --http, or leave --port out.")
    if http:
        _serve_http(options, names, directory, caller_session, port or 0)
    else:
        _serve_stdio(options, names, directory, caller_session)


def _serve_stdio(
    options: CommonOptions, names: Sequence[str], cwd: str | None, session_id: str | None
) -> None:
    from dsh_memory.interfaces.mcp.wire import claim_wire

    wire = claim_wire()  # before the SDK and everything else that might print
    from dsh_memory.interfaces.cli.running import run_async
    from dsh_memory.interfaces.mcp.stdio import stdio_transport

    server = _server(options, names, cwd, session_id)

    async def work() -> None:
        async with stdio_transport(wire) as (incoming, outgoing):
            await server.sdk.run(incoming, outgoing, server.sdk.create_initialization_options())

    try:
        run_async(work)
    finally:
        gc.freeze()  # else the last collection, of the SDK's many types, holds the exit up


def _serve_http(
    options: CommonOptions,
    names: Sequence[str],
    cwd: str | None,
    session_id: str | None,
    port: int,
) -> None:
    from dsh_memory.interfaces.mcp.http_guard import TOKEN_VARIABLE, token_from

    token = token_from(os.environ.get(TOKEN_VARIABLE))
    from dsh_memory.interfaces.cli.running import run_async
    from dsh_memory.interfaces.mcp.http import serve_http

    server = _server(options, names, cwd, session_id)

    def ready(url: str) -> None:
        if options.json:
            output.print_json_line({"url": url, "token": token.text if token.generated else None})
            output.flush()
            return
        output.note(f"MCP server: {url}")
        if token.generated:
            output.note(f"Authorization: Bearer {token.text}")
        else:
            output.note(f"Authorization: Bearer with the value of {TOKEN_VARIABLE}")

    run_async(lambda: serve_http(server.sdk, port=port, token=token.text, ready=ready))


def _server(
    options: CommonOptions, names: Sequence[str], cwd: str | None, session_id: str | None
) -> MemoryServer:
    from dsh_memory.interfaces.mcp.server import MemoryServer
    from dsh_memory.interfaces.mcp.sets import tool_sets

    return MemoryServer(options.load, tool_sets(names, cwd=cwd, session_id=session_id))


def _set_names(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in SETS:
            raise RequestError(
                f"--tools does not know {name[:60]!r}.", hint=f"Known: {', '.join(SETS)}."
            )
    return names


def _caller_directory(cwd: str | None) -> str | None:
    if cwd == ".":
        return str(current_directory())
    if cwd is not None and not cwd.startswith("/"):
        raise RequestError(
            f"--cwd must be an absolute directory or ., not {cwd[:200]!r}.",
            hint="Sessions record absolute directories; give the agent's own.",
        )
    return cwd

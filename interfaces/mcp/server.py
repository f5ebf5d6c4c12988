"""The MCP server: tool sets over one live memory, on the SDK's low-level server.

The low-level server hands over arguments as they came. The SDK's decorated tools would turn texts
into numbers and drop unknown arguments before anybody could refuse them.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

import mcp_types as types
from dsh_memory.interfaces.mcp.call_order import Turns
from dsh_memory.interfaces.mcp.declarations import UNKNOWN, Answer, Hints, Tool, ToolSet
from dsh_memory.interfaces.mcp.progress import ProgressRouter
from dsh_memory.pipeline.hot_reload import LiveMemory, OpenMemory, live_memory
from dsh_memory.runtime.config.layers import LoadedConfig
from dsh_memory.runtime.config.settings import Settings
from dsh_memory.runtime.errors import ConfigError, DshMemoryError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

NAME: Final = "dsh-memory"
logger = logging.getLogger(__name__)

Context = ServerRequestContext[LiveMemory, Any]


class MemoryServer:
    """What a server needs to answer: the declared tools and who may run when.

    Args:
        load: Reads and validates the configuration; called before every call.
        sets: The tool sets to offer.
        open_memory: Opens a memory; by default `pipeline.assembly.open_memory`.
    """

    def __init__(
        self,
        load: Callable[[], LoadedConfig],
        sets: Sequence[ToolSet],
        *,
        open_memory: OpenMemory | None = None,
    ) -> None:
        self._load = load
        self._open = open_memory
        self._tools = {tool.name: tool for each in sets for tool in each.tools}
        self._progress = ProgressRouter()
        self._turns = Turns()
        self._listed: dict[str, Hints] | None = None
        guidance = [each.guidance for each in sets if each.guidance is not None]
        self.sdk = _Sdk(
            NAME,
            version=version("dsh-memory"),
            instructions="\n\n".join(guidance) or None,
            lifespan=self._lifespan,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    @asynccontextmanager
    async def _lifespan(self, _: Server[LiveMemory]) -> AsyncIterator[LiveMemory]:
        async with live_memory(self._load, open_memory=self._open, progress=self._progress) as live:
            yield live

    async def _list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        try:
            hints = self._hints(self._load().settings)
        except ConfigError:  # every call will say so; until then promise nothing
            hints = dict.fromkeys(self._tools, UNKNOWN)
        self._listed = hints
        return types.ListToolsResult(
            tools=[_declared(tool, hints[name]) for name, tool in self._tools.items()]
        )

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(
                code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:100]!r}"
            )
        arguments = params.arguments or {}
        live = context.lifespan_context

        async def work() -> Answer:
            async with self._turns.take(exclusive=tool.exclusive):
                return await live.run(lambda memory: tool.run(memory, arguments))

        try:
            answer = await self._progress.run(context.session.report_progress, work)
        except DshMemoryError as error:
            result = _failed(error)
        except Exception as error:  # the boundary: a model never sees a traceback
            logger.exception("%s failed unexpectedly", tool.name)
            result = _failed(_unexpected(error))
        else:
            result = types.CallToolResult(
                content=[types.TextContent(type="text", text=answer.text)],
                structured_content=answer.value,
            )
        await self._announce_changes(context)
        return result

    def _hints(self, settings: Settings) -> dict[str, Hints]:
        return {name: tool.hints(settings) for name, tool in self._tools.items()}

    async def _announce_changes(self, context: Context) -> None:
        """Tell the client to list the tools again when their annotations are no longer true."""
        settings = context.lifespan_context.settings
        if settings is None or self._listed in (None, self._hints(settings)):
            return
        # Later protocol versions deliver this only to clients that subscribed.
        if context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            await context.session.send_tool_list_changed()


class _Sdk(Server[LiveMemory]):
    """The SDK's server, which says that its tool list can change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
        )


def _declared(tool: Tool, hints: Hints) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=tool.result,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=hints.read_only,
            destructive_hint=False,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
    )


def _failed(error: DshMemoryError) -> types.CallToolResult:
    from dsh_memory.pipeline.memory.render import render_error

    return types.CallToolResult(
        content=[types.TextContent(type="text", text=render_error(error))], is_error=True
    )


def _unexpected(error: Exception) -> DshMemoryError:
    return DshMemoryError(
        f"Unexpected {type(error).__name__}.",
        code="INTERNAL",
        hint="This is a defect of dsh-memory; the server's stderr has the details.",
    )

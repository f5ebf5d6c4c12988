"""Hits that are calls or results of our own tools are marked, or left out and counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.pipeline.shared.echoes import TOOL_NAMES, is_own_tool

Open = Callable[..., MemoryWorkflow]
OURS = "mcp__memory__recall_memory"


@pytest.mark.parametrize("tool", TOOL_NAMES)
@pytest.mark.parametrize("server", ["memory", "my-server_2", "a__b", "记忆"])
def test_our_tools_are_recognized_on_any_server(server: str, tool: str) -> None:
    assert is_own_tool(f"mcp__{server}__{tool}")


@pytest.mark.parametrize(
    "name",
    [
        "recall_memory",
        "mcp__recall_memory",
        "mcp____recall_memory",
        "mcp__s__recall_memory2",
        "mcp__s__my_recall_memory",
        "mcp__s__bash",
        "xmcp__s__recall_memory",
        "",
    ],
)
def test_other_names_are_not_ours(name: str) -> None:
    assert not is_own_tool(name)


@pytest.mark.anyio
async def test_echoes_are_marked_by_default(page_of: Any, open_workflow: Open, hit: Any) -> None:
    page_of(
        hit("a", tools=(OURS,), type="tool/result"),
        hit("b", tools=("bash",), type="tool/call"),
        hit("c", tools=(OURS, "bash")),
        hit("d", tools=(OURS, "mcp__x__fetch_session")),
        hit("e"),
    )
    value = (await open_workflow().page({"query": "x"})).to_json()
    assert [item.get("echo") for item in value["results"]] == [True, None, None, True, None]
    assert "excluded_echoes" not in value


@pytest.mark.anyio
async def test_echoes_can_be_left_out_and_are_counted(
    page_of: Any, open_workflow: Open, hit: Any
) -> None:
    page_of(hit("a", tools=(OURS,)), hit("b"), hit("c", tools=(OURS,)), next_cursor="more")
    workflow = open_workflow(search={"exclude_echoes": True})
    value = (await workflow.page({"query": "x"})).to_json()
    assert [item["session_id"] for item in value["results"]] == ["b"]
    assert (value["excluded_echoes"], value["next_cursor"]) == (2, "more")
    assert value["excluded_subagent_sessions"] == 0

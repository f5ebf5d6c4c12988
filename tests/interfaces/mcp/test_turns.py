"""Exclusive searches and parallel reads."""

from __future__ import annotations

import anyio
import pytest
from dsh_memory.interfaces.mcp.call_order import Turns

pytestmark = pytest.mark.anyio


async def settle() -> None:
    await anyio.wait_all_tasks_blocked()


async def test_shared_turns_run_together_and_exclusive_ones_alone_in_order() -> None:
    turns = Turns()
    running: set[str] = set()
    seen: list[set[str]] = []
    leave = {name: anyio.Event() for name in "abXcY"}

    async def take(name: str) -> None:
        async with turns.take(exclusive=name.isupper()):
            running.add(name)
            seen.append(set(running))
            await leave[name].wait()
            running.remove(name)

    async with anyio.create_task_group() as tasks:
        for name in "abXcY":
            tasks.start_soon(take, name)
            await settle()
        assert running == {"a", "b"}
        leave["a"].set()
        await settle()
        assert running == {"b"}, "X waits for b, and c does not overtake X"
        leave["b"].set()
        await settle()
        assert running == {"X"}
        leave["X"].set()
        await settle()
        assert running == {"c"}
        leave["c"].set()
        await settle()
        assert running == {"Y"}
        leave["Y"].set()
    assert seen[-1] == {"Y"}


async def test_a_cancelled_waiter_does_not_block_those_behind_it() -> None:
    turns = Turns()
    got: list[str] = []
    scope = anyio.CancelScope()

    async def waits() -> None:
        with scope:
            async with turns.take(exclusive=True):
                got.append("cancelled")

    async def shared() -> None:
        async with turns.take(exclusive=False):
            got.append("shared")

    async with anyio.create_task_group() as tasks, turns.take(exclusive=False):
        tasks.start_soon(waits)
        await settle()
        tasks.start_soon(shared)
        await settle()
        assert got == []
        scope.cancel()
        await settle()
        assert got == ["shared"]
    async with turns.take(exclusive=True):
        got.append("free")
    assert got == ["shared", "free"]

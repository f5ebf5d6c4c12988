"""Loading the model as the product wires it: through its classifier, with a limit of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from dsh_memory.classifier.filter import score_texts
from dsh_memory.pipeline.assembly import open_memory
from dsh_memory.runtime.config.layers import LoadedConfig
from dsh_memory.runtime.ollama.errors import OllamaError

SAMPLE_HOME = Path(__file__).parents[3] / "examples" / "sample-home"
REQUEST_SECONDS = 2.0


@pytest.mark.parametrize("load_timeout", [30.0, 1.0], ids=["in time", "too slow"])
def test_loading_has_another_limit_than_a_scoring_request(
    fake_ollama: Any,
    load_text: Callable[..., LoadedConfig],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    load_timeout: float,
) -> None:
    fake_ollama.order(load_seconds=REQUEST_SECONDS * 1.5)
    monkeypatch.setenv("PATH", fake_ollama.environ["PATH"])
    assert score_texts.__kwdefaults__["timeout"] == 30.0
    monkeypatch.setitem(score_texts.__kwdefaults__, "timeout", REQUEST_SECONDS)
    home = shutil.copytree(SAMPLE_HOME, tmp_path / "home")
    loaded = load_text(
        f'[store]\nhome = "{home}"\n[index]\npath = ":memory:"\n'
        f'[jev]\nenabled = true\nmanage_ollama = true\nbase_url = "{fake_ollama.base_url}"\n'
        f"load_timeout = {load_timeout}\n"
    )

    async def search() -> Any:
        async with open_memory(loaded) as memory:
            request = {"query": "database", "question": "Which database?"}
            return (await memory.page(request, review=False)).to_json()

    if load_timeout < REQUEST_SECONDS:
        with pytest.raises(OllamaError, match="not loaded within 1 s") as caught:
            anyio.run(search)
        assert caught.value.code == "OLLAMA_LOAD_TIMEOUT"
        return
    result = anyio.run(search)
    assert result["jev"]["context_window"] == 8192
    assert result["jev"]["kept"] == len(result["results"]) > 0
    assert fake_ollama.requests().count("/v1/systemone") == 1 + result["jev"]["requests"]

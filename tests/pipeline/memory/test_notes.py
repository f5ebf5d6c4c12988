"""Which pages become notes, and that a note holds the page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from dsh_memory.exporters.errors import VAULT_MISSING, ObsidianError
from dsh_memory.pipeline.memory.workflow import MemoryWorkflow
from dsh_memory.pipeline.shared.errors import RequestError
from dsh_memory.sessionquery.errors import PERSISTENCE_FAILED, SessionQueryError

pytestmark = pytest.mark.anyio
Open = Callable[..., MemoryWorkflow]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    path = tmp_path / "vault"
    path.mkdir()
    return path


@pytest.fixture
def noted(open_workflow: Open, vault: Path) -> MemoryWorkflow:
    return open_workflow(obsidian={"enabled": True, "vault_path": str(vault)})


def note_page(path: Path) -> Any:
    found = re.search(r"^(`+)json\n(.*?)\n\1$", path.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return json.loads(found[2])


async def test_a_page_becomes_one_note_with_everything_but_its_own_path(
    noted: MemoryWorkflow, vault: Path, page_of: Any, hit: Any
) -> None:
    page_of(hit("a", "[[x]] <% y %> ```\n"), next_cursor="more")
    result = await noted.page({"query": "x", "question": "Why?", "cwd": "/w"})
    value = result.to_json()
    path = Path(value.pop("note_path"))
    assert list(vault.iterdir()) == [path]
    assert note_page(path) == value
    properties = yaml.safe_load(path.read_text().split("\n---\n")[0])
    assert properties["question"] == "Why?"
    assert (properties["scope"], properties["cwd"]) == ("cwd", "/w")
    assert "model" not in properties
    assert "There are more matches" in path.read_text()


async def test_an_empty_page_becomes_a_note_and_a_rerun_a_new_one(
    noted: MemoryWorkflow, vault: Path
) -> None:
    for _ in range(3):
        await noted.page({"query": "x"})
    assert len(list(vault.iterdir())) == 3


async def test_reads_make_no_note(
    noted: MemoryWorkflow, vault: Path, window_of: Any, said: Any
) -> None:
    window_of(said(5, "x"))
    await noted.read_value({"session_id": "root", "seq": 5})
    assert list(vault.iterdir()) == []


async def test_failed_pages_make_no_note(noted: MemoryWorkflow, vault: Path, engine: Any) -> None:
    engine.page = SessionQueryError("broken", code=PERSISTENCE_FAILED)
    with pytest.raises(SessionQueryError):
        await noted.page({"query": "x"})
    with pytest.raises(RequestError):
        await noted.page({"query": ""})
    assert list(vault.iterdir()) == []


async def test_a_missing_vault_fails_the_search(open_workflow: Open, tmp_path: Path) -> None:
    workflow = open_workflow(obsidian={"enabled": True, "vault_path": str(tmp_path / "none")})
    with pytest.raises(ObsidianError) as caught:
        await workflow.page({"query": "x"})
    assert caught.value.code == VAULT_MISSING
    assert list(tmp_path.iterdir()) == []


async def test_disabled_notes_touch_no_vault(open_workflow: Open, vault: Path) -> None:
    workflow = open_workflow(obsidian={"enabled": False, "vault_path": str(vault)})
    result = await workflow.page({"query": "x"})
    assert result.note_path is None
    assert list(vault.iterdir()) == []

"""Homes whose path is unusual, and users without a place for the index."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import pytest
from dsh_memory.sessionquery import EngineOptions, SessionQueryEngine, SessionQueryError

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "sample-home"


def search(options: EngineOptions) -> int:
    async def run() -> int:
        async with SessionQueryEngine(options) as engine:
            return len((await engine.search_sessions("database")).items)

    return anyio.run(run)


def test_a_home_whose_path_is_no_utf8_is_searched(tmp_path: Path) -> None:
    home = os.fsdecode(os.fsencode(tmp_path) + b"/h\xff")
    try:
        shutil.copytree(SAMPLE, home)
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    options = EngineOptions(home=home, index_path=str(tmp_path / "index.sqlite3"))
    assert search(options) == search(options) == 9


def test_a_user_without_a_home_is_told_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home(*_: object, **__: object) -> str:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("platformdirs.user_cache_dir", no_home)
    with pytest.raises(SessionQueryError, match="no home directory") as caught:
        search(EngineOptions(home=str(SAMPLE)))
    assert caught.value.code == "SESSION_QUERY_INDEX_FAILED"
    assert caught.value.hint is not None
    assert "index.path" in caught.value.hint

"""The examples of ``docs/sessionquery.md`` run and print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import dsh_memory.sessionquery as sessionquery
import pytest
from dsh_memory.sessionquery import SessionQueryEngine, errors

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sessionquery.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") == 2


@pytest.mark.parametrize(("code", "output"), EXAMPLES, ids=["search", "live"])
def test_an_example_prints_what_the_page_says(code: str, output: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, output), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_page_names_every_method_code_and_option() -> None:
    methods = {name for name in vars(SessionQueryEngine) if not name.startswith("_")}
    codes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, str) and value.startswith("SESSION_QUERY_")
    }
    # The last one is the original's; our configuration is checked before the engine is made.
    expected = methods | (codes - {"INVALID_CONFIG"}) | set(sessionquery.__all__)
    expected |= set(sessionquery.EngineOptions.__dataclass_fields__)
    assert {name for name in expected if not re.search(rf"\b{name}\b", PAGE)} == set()

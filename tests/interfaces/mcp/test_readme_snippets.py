"""The READMEs register the server exactly as the page for agents does, which other tests run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def snippets(path: Path) -> dict[str, str]:
    found = re.findall(r"<!-- snippet: (\w+) -->\n```\w+\n(.*?)```", path.read_text("utf-8"), re.S)
    return dict(found)


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_registrations_in_the_readme_are_the_tested_ones(name: str) -> None:
    tested = snippets(ROOT / "docs" / "agents.md")
    shown = snippets(ROOT / name)
    assert set(shown) == {"dsh", "json"}
    assert all(tested[kind] == text for kind, text in shown.items())

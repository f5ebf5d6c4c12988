"""Recorded stores and answers, unpacked once, and a factory of small stores."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = [str(HERE), str(TESTS / "oracle")]

from made_stores import MadeStore  # noqa: E402


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ``home-a``, ``home-b``, ``home-c``, ``cases-*.jsonl`` and ``damage/``."""
    root = tmp_path_factory.mktemp("recorded")
    archives = {
        "homes/home-a.tar.gz": root,
        "homes/home-b.tar.gz": root,
        "homes/home-c.tar.gz": root,
        "recorded-answers.tar.gz": root,
        "damaged-homes.tar.gz": root / "damage",
    }
    for name, target in archives.items():
        target.mkdir(exist_ok=True)
        with tarfile.open(TESTS / "data" / name) as archive:
            archive.extractall(target, filter="data")
    # Two empty directories and an empty root belong to these stores and are in no archive.
    extra = root / "damage/p-extra-files/sessions"
    (extra / "--w-proj--/empty").mkdir()
    (extra / "--empty--").mkdir()
    (root / "damage/p-no-root/sessions").mkdir()
    return root


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[[], MadeStore]:
    """Return a function that makes an empty home in a directory of its own."""
    count = 0

    def make() -> MadeStore:
        nonlocal count
        count += 1
        home = tmp_path / f"home-{count}"
        home.mkdir()
        return MadeStore(home)

    return make

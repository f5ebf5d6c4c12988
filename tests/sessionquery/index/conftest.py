"""Fixtures of the index tests: a home, searchers over it, a record of what is opened."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parent))

from dsh_memory.sessionquery.index.build import scanning
from dsh_memory.sessionquery.index.file import catalog
from dsh_memory.sessionquery.index.search import SearchIndex
from dsh_memory.sessionquery.live import LiveSessions
from dsh_memory.sessionquery.model.options import EngineOptions
from dsh_memory.sessionquery.store.store import SessionStore
from index_stores import Home, Searcher

DATA = Path(__file__).resolve().parents[2] / "data"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.root.mkdir(parents=True)
    return home


@pytest.fixture
def index_path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "index.sqlite3"


@pytest.fixture
def searcher(home: Home, index_path: Path) -> Iterator[Callable[..., Searcher]]:
    """Make searchers over `home`; by default all of them share one index file."""
    made: list[SearchIndex] = []

    def make(
        *, path: str | None = None, live: LiveSessions | None = None, **options: Any
    ) -> Searcher:
        where = str(index_path) if path is None else path
        settings = EngineOptions(home=str(home.path), index_path=where, **options)
        store = SessionStore(home.path, policy=settings.unreadable)
        index = SearchIndex(settings, store, live or LiveSessions())
        made.append(index)
        return Searcher(index)

    yield make
    for index in made:
        index.close()


@pytest.fixture
def trusting_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the times of files that were written just now for proof, as those of old files are."""
    from dsh_memory.sessionquery.disk import discovery

    for module in (catalog, discovery, scanning):
        monkeypatch.setattr(module, "RECENT_NS", -(10**18))


@dataclass
class Opened:
    """What this process opens and lists while `watching`."""

    logs: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    watching: bool = False

    def __enter__(self) -> Opened:
        self.logs.clear()
        self.listed.clear()
        self.watching = True
        return self

    def __exit__(self, *_: object) -> None:
        self.watching = False


_OPENED = Opened()


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _OPENED.watching:
        return
    if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        path = os.fsdecode(arguments[0])
        if path.endswith((".jsonl", ".jsonl.zstd")):
            _OPENED.logs.append(path)
    elif event in ("os.scandir", "os.listdir"):
        _OPENED.listed.append(str(arguments[0]))


@pytest.fixture(scope="session")
def _audit_hook() -> None:
    sys.addaudithook(_audit)


@pytest.fixture
def opened(_audit_hook: None) -> Opened:
    return _OPENED


@pytest.fixture(scope="session")
def recorded_homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("recorded")
    for archive in sorted((DATA / "homes").glob("home-?.tar.gz")):
        with tarfile.open(archive) as tar:
            tar.extractall(root, filter="data")
    return root


@pytest.fixture
def recorded_home(recorded_homes: Path, tmp_path: Path) -> Callable[[str], Home]:
    def copy(name: str) -> Home:
        source = next(recorded_homes.rglob(f"{name}/sessions"))
        shutil.copytree(source, tmp_path / name / "sessions")
        return Home(tmp_path / name)

    return copy

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
sys.path.append(str(TESTS / "oracle"))


@pytest.fixture(scope="session")
def old_stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the stores ``NAME/`` and the recorded answers ``NAME.cases.jsonl``."""
    root = tmp_path_factory.mktemp("old-stores")
    for name in ("old-homes.tar.gz", "old-edges.tar.gz"):
        with tarfile.open(TESTS / "data" / name) as archive:
            archive.extractall(root, filter="data")
    return root

"""A short slice of ``make differential``: the real DSH answers the same requests."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

SEEDS = range(1000, 1006)
REQUESTS = 40


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_requests_about_a_random_store_are_answered_alike(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import differ
    import dsh

    if dsh.launch_arguments() is None:
        here = f"{sys.platform} {platform.machine()}"
        assert here != "linux x86_64", "the real runtime must be installed here"
        pytest.skip(f"the real runtime is not published for {here}")
    verdict = differ.judge(seed, REQUESTS, tmp_path)
    assert verdict.compared == REQUESTS
    assert not verdict.wrong, "\n".join(verdict.wrong)

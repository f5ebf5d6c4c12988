"""A short slice of ``make differential``: the real DSH answers the same requests."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

SEEDS = range(1000, 1006)
OLD_SEEDS = range(2000, 2003)
DAMAGED_SEEDS = range(3000, 3003)
REQUESTS = 40


def need_the_real_runtime() -> None:
    import dsh

    if dsh.launch_arguments() is None:
        here = f"{sys.platform} {platform.machine()}"
        assert here != "linux x86_64", "the real runtime must be installed here"
        pytest.skip(f"the real runtime is not published for {here}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_requests_about_a_random_store_are_answered_alike(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import differ

    need_the_real_runtime()
    verdict = differ.judge(seed, REQUESTS, tmp_path)
    assert verdict.compared == REQUESTS
    assert not verdict.wrong, "\n".join(verdict.wrong)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", OLD_SEEDS)
def test_mutated_older_logs_are_read_or_refused_alike(seed: int, tmp_path: Path) -> None:
    import differ

    need_the_real_runtime()
    verdict = differ.judge_old(seed, tmp_path)
    assert verdict.compared > 0
    assert not verdict.wrong, "\n".join(verdict.wrong)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", DAMAGED_SEEDS)
def test_damaged_logs_are_read_or_refused_alike(seed: int, tmp_path: Path) -> None:
    import differ

    need_the_real_runtime()
    verdict = differ.judge_damaged(seed, tmp_path)
    assert verdict.compared > 0
    assert not verdict.wrong, "\n".join(verdict.wrong)

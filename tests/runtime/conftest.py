"""Shared fixtures of the runtime tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.config import LoadedConfig, load


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """The path of a user file that does not exist yet."""
    return tmp_path / "config.toml"


@pytest.fixture
def load_text(config_file: Path, tmp_path: Path) -> Callable[..., LoadedConfig]:
    """Load a configuration from the text of a user file, of a site file, variables and options."""

    def run(
        user: str | None = None,
        *,
        site: str | None = None,
        environ: dict[str, str] | None = None,
        overrides: tuple[str, ...] = (),
    ) -> LoadedConfig:
        site_file = tmp_path / "site.toml"
        for path, text in ((config_file, user), (site_file, site)):
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_text(text, encoding="utf-8")
        return load(
            config_path=config_file,
            site_path=site_file,
            environ=environ or {},
            overrides=overrides,
        )

    return run

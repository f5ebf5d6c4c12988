"""Status tells everything and does nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.pipeline.memory.render import render_status
from dsh_memory.pipeline.status.collect import collect_status
from dsh_memory.runtime.config.layers import LoadedConfig, load

pytestmark = pytest.mark.anyio


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LoadedConfig]:
    """Load a configuration whose every default place lies in `tmp_path`."""
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("DSH_HOME", raising=False)

    def make(*overrides: str) -> LoadedConfig:
        return load(
            config_path=tmp_path / "none.toml",
            site_path=tmp_path / "none-either.toml",
            overrides=overrides,
            environ={},
        )

    return make


def entries(path: Path) -> set[str]:
    return {str(entry.relative_to(path)) for entry in path.rglob("*")}


async def test_nothing_is_created_for_a_machine_without_anything(
    loaded: Callable[..., LoadedConfig], tmp_path: Path
) -> None:
    status = await collect_status(loaded())
    assert entries(tmp_path) == set()
    assert status["store"] | {"being_written": 0} == {
        "home": str(tmp_path / "HOME" / ".dsh"),
        "exists": False,
        "session_logs": 0,
        "being_written": 0,
    }
    assert status["index"]["state"] == "will be built at the first search"
    assert status["configuration"]["revision"] == "absent"
    assert status["jev"]["enabled"] is False
    assert status["jev"]["managed_service"] == {"running": False}
    assert "check" not in status["jev"]
    assert status["obsidian"] == {"enabled": False, "vault_path": None}


async def test_it_tells_where_each_setting_comes_from(
    loaded: Callable[..., LoadedConfig],
) -> None:
    status = await collect_status(loaded("index.open_at=never"))
    assert status["settings"]["index.open_at"] == {"value": "never", "from": "command-line"}
    assert status["settings"]["jev.model"] == {"value": "nimble", "from": "default"}
    assert status["verified_with_dsh"] == "0.2.1-rc.2"
    assert status["documents_pin_dsh"] == "0.2.1-rc.3"


async def test_it_counts_logs_and_opens_none(
    loaded: Callable[..., LoadedConfig], plain_home: Any
) -> None:
    log = plain_home.add("s1", plain_home.user("x"))
    plain_home.add("s2", plain_home.user("x"))
    log.write_bytes(b"\xff broken")
    status = await collect_status(loaded(f"store.home={plain_home.path}"))
    assert status["store"]["session_logs"] == 2
    assert "problem" not in status["store"]


async def test_problems_are_facts(loaded: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite3"
    foreign.write_text("no database at all " * 100)
    status = await collect_status(
        loaded(
            f"index.path={foreign}",
            "obsidian.enabled=true",
            f"obsidian.vault_path={tmp_path / 'no-vault'}",
        )
    )
    assert status["index"]["state"] in ("garbage", "foreign")
    assert "no such directory" in status["obsidian"]["problem"]
    assert foreign.read_text().startswith("no database")


async def test_check_asks_only_the_configured_endpoint(
    loaded: Callable[..., LoadedConfig],
) -> None:
    import socket

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    status = await collect_status(loaded(f"jev.base_url=http://127.0.0.1:{port}"), check=True)
    assert status["jev"]["check"]["reachable"] is False


async def test_the_state_of_a_running_service_is_included(
    loaded: Callable[..., LoadedConfig],
) -> None:
    failure = {"code": "OLLAMA_X", "message": "m", "hint": None, "retryable": False, "at": 0.0}
    status = await collect_status(
        loaded(), service_state={"state": "failed", "last_failure": failure}
    )
    assert status["jev"]["state"] == "failed"
    assert status["jev"]["last_failure"]["code"] == "OLLAMA_X"


async def test_its_text_is_complete_and_flat(loaded: Callable[..., LoadedConfig]) -> None:
    text = render_status(await collect_status(loaded()))
    assert "  jev.base_url: http://127.0.0.1:11434 (default)" in text
    assert "  open at: first-search" in text
    assert "{" not in text

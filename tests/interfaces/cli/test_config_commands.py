"""``dsh-memory config`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def test_a_value_is_set_shown_and_unset(command: Any) -> None:
    assert command("config", "set", "jev.model", "other").status == 0
    assert command("config", "get", "jev.model").stdout == "other\n"
    assert command("config", "get", "--json", "jev.model").json["layer"] == "user"
    assert command("config", "unset", "jev.model").status == 0
    assert command("config", "get", "--json", "jev.model").json["layer"] == "default"


def test_the_path_is_printed_and_the_file_is_private(command: Any) -> None:
    path = Path(command("config", "path").stdout.strip())
    assert not path.exists()
    command("config", "set", "index.snippet_chars", "100")
    assert path.stat().st_mode & 0o777 == 0o600


def test_layers_win_in_their_order(command: Any) -> None:
    command("config", "set", "jev.model", "file")
    shown = command("config", "get", "jev.model", DSH_MEMORY_JEV__MODEL="environment")
    assert shown.stdout == "environment\n"
    shown = command(
        "config", "get", "--set", "jev.model=option", "jev.model", DSH_MEMORY_JEV__MODEL="env"
    )
    assert shown.stdout == "option\n"


def test_a_stale_revision_is_a_conflict_and_writes_nothing(command: Any) -> None:
    command("config", "set", "jev.model", "first")
    refused = command("config", "set", "--json", "--revision", "absent", "jev.model", "second")
    assert refused.status == 2
    assert refused.json["error"]["code"] == "CONFIG_CONFLICT"
    assert command("config", "get", "jev.model").stdout == "first\n"


def test_a_broken_file_is_named(command: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[jev\n")
    refused = command("search", "--json", "--config", str(broken), "x")
    assert (refused.status, refused.json["error"]["code"]) == (2, "CONFIG_SYNTAX")
    assert str(broken) in refused.json["error"]["message"]


def test_another_file_can_be_edited(command: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    command("config", "set", "--config", str(other), "search.exclude_echoes", "true")
    assert "exclude_echoes = true" in other.read_text()

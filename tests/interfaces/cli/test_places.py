"""Paths that a command is given, or has to find out."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("option", ["--home", "--config"])
@pytest.mark.parametrize("text", ["", "~nobody-of-this-name/x"])
def test_a_path_that_names_no_place_is_refused(command: Any, option: str, text: str) -> None:
    commands = [["search", "x"], ["config", "set", "jev.model", "other"], ["config", "show"]]
    if option == "--home":
        del commands[1]  # the home does not matter there
    for words in commands:
        refused = command(*words, option, text, "--json")
        assert (refused.status, refused.json["error"]["code"]) == (2, "REQUEST_OPTION")
        assert option in refused.json["error"]["message"]
    assert not Path(command.environment["XDG_CONFIG_HOME"]).exists()


def test_an_unknown_users_home_in_the_environment_is_refused(command: Any) -> None:
    refused = command("search", "--json", "x", DSH_HOME="~nobody-of-this-name/.dsh")
    assert (refused.status, refused.json["error"]["code"]) == (2, "CONFIG_INVALID")
    assert "DSH_HOME" in refused.json["error"]["message"]


def test_only_what_needs_the_current_directory_fails_without_one(
    command: Any, tmp_path: Path
) -> None:
    def lost(*words: str, **changes: str) -> tuple[int, Any]:
        folder = tmp_path / "lost"
        folder.mkdir()
        done = subprocess.run(
            ["sh", "-c", 'rmdir "$0" && exec "$@"', str(folder), *command.arguments(*words)],
            env={**command.environment, **changes, "PYTHONPATH": str(Path(__file__).parents[3])},
            cwd=folder,
            capture_output=True,
            check=False,
        )
        return done.returncode, json.loads(done.stdout)

    status, page = lost("search", "--json", "database")
    assert (status, len(page["results"])) == (0, 8)
    for words in (
        ["search", "--json", "--here", "database"],
        ["search", "--json", "--home", "relative", "database"],
        ["config", "path", "--json", "--config", "relative"],
        ["recall", "--json", "database"],
    ):
        status, refused = lost(*words)
        assert (status, refused["error"]["code"]) == (2, "REQUEST_INVALID")
        assert "current directory" in refused["error"]["message"]
    status, refused = lost("search", "--json", "database", DSH_HOME="relative")
    assert (status, refused["error"]["code"]) == (2, "CONFIG_INVALID")


def test_a_user_without_a_home_is_told_so(command: Any) -> None:
    unknown_user = ["unshare", "--user", "--map-user=54321"]
    if subprocess.run([*unknown_user, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("user namespaces are not available here")
    environment = {
        name: value
        for name, value in command.environment.items()
        if name not in ("HOME", "XDG_CONFIG_HOME")
    }
    done = subprocess.run(
        [*unknown_user, *command.arguments("search", "--json", "x")],
        env=environment,
        capture_output=True,
        check=False,
    )
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"], error["hint"]) == (2, "CONFIG_INVALID", "Set HOME.")


def test_a_value_that_is_no_utf_8_is_not_written(command: Any) -> None:
    for key in ("jev.model", "obsidian.vault_path"):
        refused = command("config", "set", key, os.fsdecode(b"/v\xff"), "--json")
        assert (refused.status, refused.json["error"]["code"]) == (2, "CONFIG_INVALID")
        assert "UTF-8" in refused.json["error"]["message"]
    assert not Path(command("config", "path").stdout.strip()).exists()


def test_a_vault_whose_name_is_no_utf_8_gets_its_note(command: Any) -> None:
    vault = command.folder / os.fsdecode(b"v\xff")
    vault.mkdir()
    words = ["--obsidian", "--set", f"obsidian.vault_path={vault}", "database"]
    assert command("search", *words).status == 0
    assert len(list(vault.iterdir())) == 1

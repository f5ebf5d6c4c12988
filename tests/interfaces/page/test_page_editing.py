"""Editing in a real browser: draft, save, conflict, discard, inherited values, refusals."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

FILE = """\
# my own comment
[jev]
model = "mine"  # kept
context_window = 8192

[obsidian]
vault_path = "/vault/of/mine"
"""


def _values(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def _facts(tab: Any, key: str) -> str:
    return str(tab.inner_text(f"#field-{key.replace('.', '-')}-facts"))


def _wait_text(tab: Any, selector: str, text: str) -> None:
    tab.wait_for_function(
        "([selector, text]) => document.querySelector(selector)?.innerText.includes(text)",
        arg=[selector, text],
        polling=50,
    )


def _look(tab: Any) -> None:
    tab.evaluate("window.dispatchEvent(new Event('focus'))")


def test_an_edit_is_saved_and_there_after_a_reload(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.fill("#field-jev-model", "other")
    tab.check("#field-jev-enabled")
    _wait_text(tab, "#summary", "2 unsaved edits")
    assert _values(server.config)["jev"]["model"] == "mine"
    tab.click("#save")
    _wait_text(tab, "#notices", "Saved")
    assert _values(server.config)["jev"] == {
        "model": "other",
        "context_window": 8192,
        "enabled": True,
    }
    assert "# my own comment" in server.config.read_text()
    assert "# kept" in server.config.read_text()
    assert server.config.stat().st_mode & 0o777 == 0o600
    tab.reload()
    tab.wait_for_selector(".field")
    assert tab.input_value("#field-jev-model") == "other"
    assert tab.is_checked("#field-jev-enabled")
    assert "In effect: other" in _facts(tab, "jev.model")
    assert "This file" in _facts(tab, "jev.model")
    assert "Default: nimble" in _facts(tab, "jev.model")


def test_opening_editing_and_judging_write_nothing(serve: Any, open_tab: Any) -> None:
    server = serve(None)
    tab = open_tab(server.url)
    tab.fill("#field-jev-model", "other")
    tab.fill("#field-jev-context_window", "7")
    _wait_text(tab, "#field-jev-context_window-problem", "1024")
    tab.click("#check-obsidian")
    tab.wait_for_selector("#findings-obsidian:not([hidden])")
    assert list(server.home.iterdir()) == []


def test_the_first_save_creates_the_file(serve: Any, open_tab: Any) -> None:
    server = serve(None)
    tab = open_tab(server.url)
    assert "does not exist yet" in tab.inner_text("#file")
    tab.select_option("#field-store-unreadable", "skip")
    tab.click("#save")
    _wait_text(tab, "#notices", "Saved")
    assert _values(server.config) == {"store": {"unreadable": "skip"}}
    assert server.config.stat().st_mode & 0o777 == 0o600


def test_a_conflict_keeps_the_draft_and_overwrites_nothing(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.fill("#field-jev-model", "from-the-page")
    _wait_text(tab, "#summary", "1 unsaved edit")
    assert server.command("config", "set", "jev.model", "from-outside").returncode == 0
    written = server.config.read_bytes()
    tab.click("#save")
    _wait_text(tab, "#notices", "changed meanwhile")
    assert "CONFIG_CONFLICT" in tab.inner_text("#notices")
    assert server.config.read_bytes() == written
    assert tab.input_value("#field-jev-model") == "from-the-page"
    tab.click("#save")  # the same draft again: refused again
    _wait_text(tab, "#notices", "changed meanwhile")
    assert server.config.read_bytes() == written
    tab.get_by_role("button", name="Show new values, keep my draft").click()
    _wait_text(tab, "#notices", "your draft on top")
    assert "In effect: from-outside" in _facts(tab, "jev.model")
    assert tab.input_value("#field-jev-model") == "from-the-page"
    assert server.config.read_bytes() == written
    tab.click("#save")
    _wait_text(tab, "#notices", "Saved")
    assert _values(server.config)["jev"]["model"] == "from-the-page"


def test_another_writer_is_noticed_before_saving(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.fill("#field-jev-model", "from-the-page")
    server.config.write_text(FILE.replace("mine", "theirs"))
    _look(tab)
    _wait_text(tab, "#notices", "cannot be saved before")
    tab.get_by_role("button", name="Load the file, drop my draft").click()
    _wait_text(tab, "#summary", "No unsaved edits")
    assert tab.input_value("#field-jev-model") == "theirs"


def test_without_a_draft_the_page_follows_the_file(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    server.config.write_text(FILE.replace('"mine"', '"theirs"'))
    _look(tab)
    _wait_text(tab, "#field-jev-model-facts", "theirs")
    assert tab.input_value("#field-jev-model") == "theirs"


def test_discard_restores_the_accepted_values(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.fill("#field-jev-model", "other")
    tab.check("#field-obsidian-enabled")
    _wait_text(tab, "#summary", "2 unsaved edits")
    tab.click("#discard")
    _wait_text(tab, "#summary", "No unsaved edits")
    assert tab.input_value("#field-jev-model") == "mine"
    assert not tab.is_checked("#field-obsidian-enabled")
    assert server.config.read_text() == FILE


def test_one_edit_can_be_undone_alone(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.fill("#field-jev-model", "other")
    tab.check("#field-obsidian-enabled")
    tab.click("#field-jev-model-undo")
    _wait_text(tab, "#summary", "1 unsaved edit")
    assert tab.input_value("#field-jev-model") == "mine"


def test_inherited_defaults_are_staged_and_need_save(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.click("#stage")
    _wait_text(tab, "#summary", "3 unsaved edits")
    assert tab.input_value("#field-jev-model") == "nimble"
    assert "inherited" in tab.inner_text("#field-jev-model-staged")
    assert server.config.read_text() == FILE
    tab.click("#save")
    _wait_text(tab, "#notices", "Saved")
    assert _values(server.config).get("jev", {}) == {}
    assert _values(server.config).get("obsidian", {}) == {}
    assert "# my own comment" in server.config.read_text()
    assert "Package default" in _facts(tab, "jev.model")


def test_a_blank_optional_field_inherits_from_the_site(
    serve: Any, open_tab: Any, home: Path
) -> None:
    site = home / "site" / "dsh-memory" / "config.toml"
    site.parent.mkdir(parents=True)
    site.write_text('[obsidian]\nvault_path = "/site/vault"\n')
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.fill("#field-obsidian-vault_path", "")
    _wait_text(tab, "#field-obsidian-vault_path-staged", "/site/vault")
    tab.click("#save")
    _wait_text(tab, "#notices", "Saved")
    assert "vault_path" not in _values(server.config).get("obsidian", {})
    assert tab.input_value("#field-obsidian-vault_path") == "/site/vault"
    assert "Site file" in _facts(tab, "obsidian.vault_path")


def test_use_inherited_removes_one_override(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.click("#field-jev-model-inherit")
    assert tab.input_value("#field-jev-model") == "nimble"
    tab.click("#save")
    _wait_text(tab, "#notices", "Saved")
    assert _values(server.config)["jev"] == {"context_window": 8192}


REFUSED = [
    ("jev.context_window", "12", "1024 to 1048576"),
    ("jev.context_window", "many", "1024 to 1048576"),
    ("jev.context_window", "8192.5", "1024 to 1048576"),
    ("jev.load_timeout", "0", "above 0"),
    ("jev.model", "", "empty"),
    ("jev.model", "big:cloud", "cloud model"),
    ("jev.base_url", "http://127.0.0.1:11434@evil.example/", "credentials"),
    ("jev.base_url", "https://127.0.0.1", "https"),
    ("obsidian.vault_path", "~/vault", "~ is not expanded"),
    ("recall.default_limit", "", "1 to 10"),
]


def test_a_refused_value_is_marked_and_not_saved(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    for key, value, words in REFUSED:
        control = f"#field-{key.replace('.', '-')}"
        tab.fill(control, value)
        _wait_text(tab, f"{control}-problem", words)
        assert tab.get_attribute(control, "aria-invalid") == "true"
        assert f"{control}-problem"[1:] in tab.get_attribute(control, "aria-describedby")
        tab.click("#save")
        _wait_text(tab, "#notices", "Not saved")
        assert tab.input_value(control) == value
        assert tab.evaluate("document.activeElement.id") == control[1:]
        assert server.config.read_text() == FILE
        tab.click(f"{control}-undo")
        _wait_text(tab, "#summary", "No unsaved edits")


def test_rules_between_fields_are_shown_at_the_field(serve: Any, open_tab: Any) -> None:
    server = serve(None)
    tab = open_tab(server.url)
    tab.check("#field-jev-enabled")
    _wait_text(tab, "#field-jev-context_window-problem", "Is required when jev.enabled is true")
    tab.check("#field-jev-manage_ollama")
    _wait_text(tab, "#summary", "2 unsaved edits")
    tab.wait_for_function(
        "() => document.querySelector('#field-jev-context_window-problem').innerText === ''",
        polling=50,
    )


def test_the_layer_that_wins_is_named(serve: Any, open_tab: Any) -> None:
    server = serve(
        FILE, "--set", "recall.max_limit=7", env={"DSH_MEMORY_JEV__MODEL": "environmental"}
    )
    tab = open_tab(server.url)
    assert "In effect: environmental" in _facts(tab, "jev.model")
    assert "Environment" in _facts(tab, "jev.model")
    assert tab.input_value("#field-jev-model") == "mine"  # what the file says, and Save writes
    assert "DSH_MEMORY_JEV__MODEL" in tab.inner_text("#field-jev-model-overridden")
    assert "Command line" in _facts(tab, "recall.max_limit")


def test_leaving_drops_the_draft(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    asked: list[str] = []

    def leave(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.accept()

    tab.on("dialog", leave)
    tab.fill("#field-jev-model", "other")
    tab.reload()
    tab.wait_for_selector(".field")
    assert asked == ["beforeunload"]
    assert tab.input_value("#field-jev-model") == "mine"
    assert server.config.read_text() == FILE

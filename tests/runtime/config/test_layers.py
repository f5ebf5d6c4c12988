"""Reading: layers, provenance, strictness, and errors that name their source."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest
from dsh_memory.runtime.config import paths as directories
from dsh_memory.runtime.config.keys import keys, markdown_table
from dsh_memory.runtime.config.layers import LoadedConfig, load, read_document
from dsh_memory.runtime.config.settings import Settings, settings_json_schema
from dsh_memory.runtime.config.view import row, rows, show
from dsh_memory.runtime.errors import ConfigError

Load = Callable[..., LoadedConfig]


def test_without_any_layer_the_defaults_hold(load_text: Load) -> None:
    loaded = load_text()
    assert loaded.settings == Settings()
    assert loaded.revision == "absent"
    assert set(loaded.provenance.values()) == {"default"}
    assert set(loaded.provenance) == set(keys())
    assert loaded.settings.jev.base_url == "http://127.0.0.1:11434"
    assert loaded.settings.jev.model == "nimble"
    assert loaded.settings.jev.load_timeout == 300
    assert (loaded.settings.jev.enabled, loaded.settings.obsidian.enabled) == (False, False)


def test_a_stronger_layer_wins_key_by_key(load_text: Load) -> None:
    loaded = load_text(
        '[jev]\nmodel = "user"\ncontext_window = 2048\n',
        site='[jev]\nmodel = "site"\nbase_url = "http://[::1]:1/"\n[index]\nmax_limit = 50\n',
        environ={"DSH_MEMORY_JEV__CONTEXT_WINDOW": "4096", "PATH": "/bin"},
        overrides=("jev.enabled=true", "jev.enabled=false", "jev.load_timeout=1.5"),
    )
    jev = loaded.settings.jev
    assert (jev.model, jev.base_url, jev.context_window) == ("user", "http://[::1]:1", 4096)
    assert (jev.enabled, jev.load_timeout) == (False, 1.5)
    assert {key: layer for key, layer in loaded.provenance.items() if layer != "default"} == {
        "jev.model": "user",
        "jev.base_url": "site",
        "index.max_limit": "site",
        "jev.context_window": "environment",
        "jev.enabled": "command-line",
        "jev.load_timeout": "command-line",
    }
    assert loaded.sources["jev.context_window"].endswith("DSH_MEMORY_JEV__CONTEXT_WINDOW")


def test_the_revision_is_the_hash_of_the_file_as_read(load_text: Load, config_file: Path) -> None:
    loaded = load_text("# nothing\n")
    assert loaded.revision == hashlib.sha256(b"# nothing\n").hexdigest()
    config_file.write_text("")
    assert read_document(config_file).revision == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("[jev", "CONFIG_SYNTAX", ["config.toml"]),
        ("jev = " + "9" * 5000, "CONFIG_SYNTAX", ["config.toml"]),
        ("[jev]\nmodel = 'a'\nmodel = 'b'\n", "CONFIG_SYNTAX", ["config.toml", "line 3"]),
        ("surprise = 1", "CONFIG_UNKNOWN_KEY", ["config.toml", "surprise"]),
        ("[jev]\nbaseURL = 'x'", "CONFIG_UNKNOWN_KEY", ["jev.baseURL"]),
        ("jev = 3", "CONFIG_INVALID", ["jev", "3"]),
        ("[[jev]]\nmodel = 'a'", "CONFIG_INVALID", ["jev"]),
        ("[jev]\nenabled = 'true'", "CONFIG_INVALID", ["jev.enabled", "true"]),
        ("[jev]\nenabled = 1", "CONFIG_INVALID", ["jev.enabled", "1"]),
        ("[jev]\ncontext_window = '8192'", "CONFIG_INVALID", ["jev.context_window", "8192"]),
        ("[jev]\ncontext_window = true", "CONFIG_INVALID", ["jev.context_window", "true"]),
        ("[jev]\ncontext_window = 1023", "CONFIG_INVALID", ["1023", "1024 to 1048576"]),
        ("[jev]\ncontext_window = 1048577", "CONFIG_INVALID", ["1048577"]),
        ("[jev]\ncontext_window = 8192.5", "CONFIG_INVALID", ["8192.5"]),
        ("[jev]\nload_timeout = 0", "CONFIG_INVALID", ["jev.load_timeout", "0"]),
        ("[jev]\nload_timeout = nan", "CONFIG_INVALID", ["jev.load_timeout", "nan"]),
        ("[jev]\nload_timeout = inf", "CONFIG_INVALID", ["jev.load_timeout", "inf"]),
        ("[jev]\nmodel = ''", "CONFIG_INVALID", ["jev.model", "empty"]),
        ("[jev]\nmodel = '  '", "CONFIG_INVALID", ["jev.model"]),
        ("[jev]\nmodel = ' a'", "CONFIG_INVALID", ["jev.model"]),
        ("[jev]\nmodel = 'x:cloud'", "CONFIG_INVALID", ["jev.model", "x:cloud", "cloud"]),
        ("[jev]\nmodel = 'x-Cloud'", "CONFIG_INVALID", ["jev.model"]),
        (f"[jev]\nmodel = '{'x' * 201}'", "CONFIG_INVALID", ["jev.model", "200"]),
        (f"[jev]\nmodel = '{'😀' * 101}'", "CONFIG_INVALID", ["jev.model", "200"]),
        (
            "[jev]\nbase_url = 'https://x'",
            "CONFIG_BASE_URL",
            ["config.toml", "jev.base_url", "//x"],
        ),
        ("[jev]\nbase_url = 5", "CONFIG_INVALID", ["jev.base_url", "5"]),
        ("[index]\nopen_at = 'later'", "CONFIG_INVALID", ["index.open_at", "later"]),
        ("[index]\ndefault_limit = 0", "CONFIG_INVALID", ["index.default_limit"]),
        ("[index]\npath = 'index.db'", "CONFIG_INVALID", ["index.path", "absolute"]),
        ("[store]\nunreadable = 'ignore'", "CONFIG_INVALID", ["store.unreadable"]),
        ("[store]\nhome = '~/.dsh'", "CONFIG_INVALID", ["store.home", "absolute"]),
        ("[obsidian]\nvault_path = 'Vault'", "CONFIG_INVALID", ["obsidian.vault_path", "Vault"]),
        ("[recall]\nmax_limit = 26", "CONFIG_INVALID", ["recall.max_limit", "26"]),
        ("[jev]\nenabled = true", "CONFIG_INVALID", ["config.toml", "jev.context_window"]),
        ("[obsidian]\nenabled = true", "CONFIG_INVALID", ["obsidian.vault_path", "required"]),
        (
            "[index]\ndefault_limit = 101",
            "CONFIG_INVALID",
            ["index.default_limit", "101", "index.max_limit", "100"],
        ),
        ("[recall]\nmax_limit = 4", "CONFIG_INVALID", ["recall.default_limit", "recall.max_limit"]),
    ],
)
def test_errors_name_file_key_and_value(
    load_text: Load, config_file: Path, text: str, code: str, words: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(text)
    assert caught.value.code == code
    for word in [*words, str(config_file)]:
        assert word in caught.value.message


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("[jev]\ncontext_window = 8192.0", "jev.context_window", 8192),
        ("jev.load_timeout = 7", "jev.load_timeout", 7),
        ("jev = {model = 'a'}", "jev.model", "a"),
        ("[jev]\nbase_url = 'http://localhost:1/'", "jev.base_url", "http://localhost:1"),
        ("[index]\npath = ':memory:'", "index.path", ":memory:"),
        (f"[jev]\nmodel = '{'x' * 200}'", "jev.model", "x" * 200),
        ("[jev]\nenabled = true\nmanage_ollama = true", "jev.enabled", True),
        ("[jev]\nenabled = true\ncontext_window = 1024", "jev.enabled", True),
    ],
)
def test_values_at_the_edge_are_accepted(
    load_text: Load, text: str, key: str, value: object
) -> None:
    assert row(load_text(text), key).value == value


def test_a_wrong_value_is_an_error_also_where_a_stronger_layer_covers_it(load_text: Load) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml: jev\.model"):
        load_text("[jev]\nmodel = 5", environ={"DSH_MEMORY_JEV__MODEL": "good"})


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("DSH_MEMORY_JEV__ENABLED", "yes", "CONFIG_INVALID"),
        ("DSH_MEMORY_JEV__ENABLED", "", "CONFIG_INVALID"),
        ("DSH_MEMORY_JEV__CONTEXT_WINDOW", "8k", "CONFIG_INVALID"),
        ("DSH_MEMORY_JEV__CONTEXT_WINDOW", "٨٠٠٠", "CONFIG_INVALID"),
        ("DSH_MEMORY_JEV__LOAD_TIMEOUT", "nan", "CONFIG_INVALID"),
        ("DSH_MEMORY_JEV__LOAD_TIMEOUT", "1e999", "CONFIG_INVALID"),
        ("DSH_MEMORY_JEV__BASE_URL", "http://evil.example", "CONFIG_BASE_URL"),
        ("DSH_MEMORY_JEV__BASEURL", "x", "CONFIG_UNKNOWN_KEY"),
        ("DSH_MEMORY_JEV_ENABLED", "true", "CONFIG_UNKNOWN_KEY"),
        ("DSH_MEMORY_jev__enabled", "true", "CONFIG_UNKNOWN_KEY"),
        ("DSH_MEMORY_", "", "CONFIG_UNKNOWN_KEY"),
        ("DSH_MEMORY_OBSIDIAN__VAULT_PATH", "", "CONFIG_INVALID"),
    ],
)
def test_a_wrong_variable_is_named(load_text: Load, variable: str, value: str, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(environ={variable: value})
    assert caught.value.code == code
    assert variable in caught.value.message


def test_the_token_variable_is_no_setting(load_text: Load) -> None:
    assert load_text(environ={"DSH_MEMORY_MCP_TOKEN": "secret"}).settings == Settings()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("jev.enabled", "CONFIG_INVALID"),
        ("jev.enabled=TRUE", "CONFIG_INVALID"),
        ("=1", "CONFIG_UNKNOWN_KEY"),
        ("jev.nothing=1", "CONFIG_UNKNOWN_KEY"),
        ("jev.base_url=http://127.1", "CONFIG_BASE_URL"),
    ],
)
def test_a_wrong_option_is_named(load_text: Load, text: str, code: str) -> None:
    with pytest.raises(ConfigError, match="--set") as caught:
        load_text(overrides=(text,))
    assert caught.value.code == code


def test_an_option_value_may_contain_equals_signs(load_text: Load) -> None:
    loaded = load_text(overrides=("obsidian.vault_path=/a=b",))
    assert loaded.settings.obsidian.vault_path == "/a=b"


@pytest.mark.parametrize("kind", ["directory", "fifo", "binary", "huge"])
def test_a_file_that_is_no_configuration_is_an_error(config_file: Path, kind: str) -> None:
    if kind == "directory":
        config_file.mkdir()
    elif kind == "fifo":
        os.mkfifo(config_file)
    elif kind == "binary":
        config_file.write_bytes(b"\xff\xfe\x00")
    else:
        config_file.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(ConfigError) as caught:
        read_document(config_file)
    assert caught.value.code == ("CONFIG_SYNTAX" if kind == "binary" else "CONFIG_READ_FAILED")


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().jev.enabled = True  # type: ignore[misc]


def test_rows_show_value_layer_and_default(load_text: Load) -> None:
    loaded = load_text("[jev]\nmodel = 'a'\n")
    assert row(loaded, "jev.model").to_json() == {
        "key": "jev.model",
        "value": "a",
        "layer": "user",
        "default": "nimble",
        "source": str(loaded.user_path),
    }
    assert [item.key for item in rows(loaded)] == list(keys())
    assert show(loaded)["revision"] == loaded.revision
    with pytest.raises(ConfigError, match="nothing"):
        row(loaded, "jev.nothing")


def test_the_files_lie_where_platformdirs_puts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for home, dirs in (
        ("", ""),
        ("/a/b", "/c:/d"),
        ("/a", ""),
        ("relative", "relative:/d"),
        ("/a b\n", "relative"),
    ):
        monkeypatch.setenv("XDG_CONFIG_HOME", home)
        monkeypatch.setenv("XDG_CONFIG_DIRS", dirs)
        user = platformdirs.user_config_path("dsh-memory", appauthor=False)
        site = platformdirs.site_config_path("dsh-memory", appauthor=False)
        assert directories.user_config_file() == user / "config.toml"
        assert directories.site_config_file() == site / "config.toml"


def test_the_documented_table_is_the_models_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "configuration.md"
    assert markdown_table() in page.read_text(encoding="utf-8")


def test_every_key_has_a_meaning_and_the_schema_has_its_bounds() -> None:
    assert all(info.meaning for info in keys().values())
    jev = settings_json_schema()["$defs"]["JevSettings"]["properties"]
    assert jev["context_window"]["anyOf"][0] == {
        "type": "integer",
        "minimum": 1024,
        "maximum": 1048576,
    }


def test_reading_imports_no_editor_and_no_client(tmp_path: Path) -> None:
    program = (
        "import sys, dsh_memory.runtime.config.layers as c; from pathlib import Path;"
        f"c.load(config_path=Path({str(tmp_path / 'x.toml')!r}));"
        "print([m for m in ('tomlkit','httpx','ollama','openai','platformdirs','rich','asyncio')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_users_file_is_read_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    (tmp_path / "dsh-memory").mkdir()
    (tmp_path / "dsh-memory" / "config.toml").write_text("[jev]\nmodel = 'mine'\n")
    assert load(environ={}).settings.jev.model == "mine"


def test_a_whole_number_may_be_written_with_a_point_in_every_layer(
    load_text: Callable[..., LoadedConfig],
) -> None:
    for layer in (
        {"user": "[jev]\ncontext_window = 8192.0"},
        {"environ": {"DSH_MEMORY_JEV__CONTEXT_WINDOW": "8192.0"}},
        {"overrides": ("jev.context_window=8192.0",)},
    ):
        assert load_text(**layer).settings.jev.context_window == 8192
    with pytest.raises(ConfigError):
        load_text(overrides=("jev.context_window=8192.5",))


def test_a_variable_in_the_wrong_case_is_told_the_right_one(
    load_text: Callable[..., LoadedConfig],
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(environ={"DSH_MEMORY_Jev__Enabled": "true"})
    assert caught.value.hint == "Write it as DSH_MEMORY_JEV__ENABLED."


def test_a_rule_that_a_default_breaks_names_the_default(
    load_text: Callable[..., LoadedConfig],
) -> None:
    with pytest.raises(ConfigError, match=r"index\.default_limit \(20, the default\)"):
        load_text("[index]\nmax_limit = 7")

"""Writing: fenced, atomic, owner-only, comments kept."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from dsh_memory.runtime.config.edit import (
    UNSET,
    apply_changes,
    find_problems,
    set_text,
    set_value,
    unset_value,
)
from dsh_memory.runtime.config.layers import LoadedConfig, load, read_document
from dsh_memory.runtime.errors import ConfigError

COMMENTED = """\
# my settings
[jev]   # the model
enabled = true # on
context_window = 8192   # tokens

# notes
[obsidian]
vault_path = "/vault" # here
"""


def test_the_first_write_creates_the_file_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "config.toml"
    old = os.umask(0)
    try:
        result = set_text(path, "jev.context_window", "8192", expected_revision="absent")
    finally:
        os.umask(old)
    assert result.changed
    assert path.read_text() == "[jev]\ncontext_window = 8192\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert result.revision == load(config_path=path, environ={}).revision
    assert [entry.name for entry in path.parent.iterdir()] == ["config.toml"]


def test_comments_order_and_spacing_stay(config_file: Path) -> None:
    config_file.write_text(COMMENTED)
    set_value(config_file, "jev.context_window", 4096)
    set_value(config_file, "jev.enabled", False)
    assert config_file.read_text() == COMMENTED.replace("8192", "4096").replace("true", "false")
    assert stat.S_IMODE(config_file.stat().st_mode) == 0o600


def test_unset_removes_the_line_and_a_table_that_holds_nothing_else(config_file: Path) -> None:
    config_file.write_text(COMMENTED)
    unset_value(config_file, "jev.enabled")
    unset_value(config_file, "obsidian.vault_path")
    text = config_file.read_text()
    assert "enabled" not in text
    assert "[obsidian]" not in text
    assert "# my settings\n[jev]   # the model\n" in text
    assert "# notes" in text


@pytest.mark.parametrize(
    "text",
    [
        "jev.model = 'a' # why\n",
        "jev = { model = 'a' }\n",
        "[jev]\nmodel = 'a'\r\n",
        "[jev]\n'model' = '''a'''",
    ],
)
def test_every_spelling_of_a_table_can_be_edited(config_file: Path, text: str) -> None:
    config_file.write_bytes(text.encode())
    set_value(config_file, "jev.model", "b")
    assert read_document(config_file).values == {"jev.model": "b"}
    set_value(config_file, "jev.context_window", 2048)
    unset_value(config_file, "jev.model")
    assert read_document(config_file).values == {"jev.context_window": 2048}


@pytest.mark.parametrize("value", ['a"b', "a\\b", "ü 漢字 😀", "#no comment", "x'''y"])
def test_any_text_survives_a_write(config_file: Path, value: str) -> None:
    set_value(config_file, "jev.model", value)
    assert load(config_path=config_file, environ={}).settings.jev.model == value


def test_a_stale_revision_is_a_conflict_and_nothing_is_written(config_file: Path) -> None:
    first = set_value(config_file, "jev.model", "one", expected_revision="absent")
    before = config_file.read_bytes()
    for stale in ("absent", "0" * 64):
        with pytest.raises(ConfigError) as caught:
            set_value(config_file, "jev.model", "two", expected_revision=stale)
        assert caught.value.code == "CONFIG_CONFLICT"
        assert config_file.read_bytes() == before
    second = set_value(config_file, "jev.model", "two", expected_revision=first.revision)
    config_file.unlink()
    with pytest.raises(ConfigError, match="changed by someone else"):
        set_value(config_file, "jev.model", "three", expected_revision=second.revision)
    assert not config_file.exists()


def test_of_writers_with_the_same_revision_exactly_one_wins(config_file: Path) -> None:
    program = (
        "import sys; from pathlib import Path;"
        "from dsh_memory.runtime.config.edit import set_value;"
        "from dsh_memory.runtime.errors import ConfigError\n"
        "sys.stdin.readline()\n"
        "try: set_value(Path(sys.argv[1]), 'jev.model', sys.argv[2], expected_revision='absent')\n"
        "except ConfigError as error: print(error.code)\n"
        "else: print('won')\n"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(config_file), f"model-{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    outcomes = [writer.communicate(timeout=60)[0].strip() for writer in writers]
    assert sorted(outcomes) == ["CONFIG_CONFLICT"] * 3 + ["won"]
    winner = f"model-{outcomes.index('won')}"
    assert load(config_path=config_file, environ={}).settings.jev.model == winner


def test_unfenced_writers_lose_no_update(config_file: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from dsh_memory.runtime.config.edit import set_text\n"
        "for n in range(5): set_text(Path(sys.argv[1]), sys.argv[2], str(10 + n))\n"
    )
    keys = ("index.default_limit", "index.snippet_chars", "index.read_window_max")
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(config_file), key]) for key in keys
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    assert read_document(config_file).values == dict.fromkeys(keys, 14)


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("jev.model", "x:cloud", "CONFIG_INVALID"),
        ("jev.enabled", True, "CONFIG_INVALID"),
        ("jev.enabled", "true", "CONFIG_INVALID"),
        ("jev.context_window", 5, "CONFIG_INVALID"),
        ("jev.base_url", "http://127.1", "CONFIG_BASE_URL"),
        ("jev.nothing", 5, "CONFIG_UNKNOWN_KEY"),
        ("jev", 5, "CONFIG_UNKNOWN_KEY"),
    ],
)
def test_what_would_not_load_is_not_written(
    tmp_path: Path, key: str, value: object, code: str
) -> None:
    path = tmp_path / "sub" / "config.toml"
    with pytest.raises(ConfigError) as caught:
        set_value(path, key, value)
    assert caught.value.code == code
    assert not path.parent.exists()


def test_changes_that_belong_together_are_one_write(config_file: Path) -> None:
    result = apply_changes(config_file, {"jev.enabled": True, "jev.context_window": 4096})
    assert result.settings.jev.enabled
    with pytest.raises(ConfigError, match="context_window"):
        unset_value(config_file, "jev.context_window")
    reset = apply_changes(config_file, {"jev.enabled": UNSET, "jev.context_window": UNSET})
    assert not reset.settings.jev.enabled
    assert reset.settings.jev.context_window is None


def test_a_change_that_changes_nothing_writes_nothing(config_file: Path, tmp_path: Path) -> None:
    set_value(config_file, "jev.model", "a")
    inode = config_file.stat().st_ino
    assert not set_value(config_file, "jev.model", "a").changed
    assert not unset_value(config_file, "jev.context_window").changed
    assert config_file.stat().st_ino == inode
    nowhere = tmp_path / "nowhere" / "config.toml"
    assert unset_value(nowhere, "jev.model").revision == "absent"
    assert not nowhere.parent.exists()


def test_a_broken_file_can_be_repaired_by_unset_only(config_file: Path) -> None:
    config_file.write_text("[jev]\nbaseURL = 'x'\nmodel = 'm'\n[future]\nkey = 1\n")
    with pytest.raises(ConfigError, match="baseURL"):
        set_value(config_file, "jev.model", "n")
    apply_changes(config_file, {"jev.baseURL": UNSET, "future": UNSET})
    assert read_document(config_file).values == {"jev.model": "m"}
    with pytest.raises(ConfigError, match="no configuration key"):
        unset_value(config_file, "jev.baseURL")
    config_file.write_text("[jev")
    with pytest.raises(ConfigError) as caught:
        set_value(config_file, "jev.model", "n")
    assert caught.value.code == "CONFIG_SYNTAX"


def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    target = tmp_path / "dotfiles" / "memory.toml"
    target.write_text("# kept\n")
    link = tmp_path / "config.toml"
    link.symlink_to("dotfiles/memory.toml")
    result = set_value(link, "jev.model", "a")
    assert link.is_symlink()
    assert result.path == target
    assert target.read_text().startswith("# kept\n")
    assert load(config_path=link, environ={}).settings.jev.model == "a"


def test_a_read_only_file_is_not_replaced(config_file: Path) -> None:
    set_value(config_file, "jev.model", "a")
    config_file.chmod(0o444)
    before = config_file.read_bytes()
    with pytest.raises(ConfigError) as caught:
        set_value(config_file, "jev.model", "b")
    assert caught.value.code == "CONFIG_WRITE_FAILED"
    assert "read-only" in caught.value.message
    assert config_file.read_bytes() == before
    assert [entry.name for entry in config_file.parent.iterdir()] == ["config.toml"]


def test_a_read_only_file_system_is_a_failed_write(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "config.toml").write_text("[jev]\nmodel = 'a'\n")
    program = (
        "from pathlib import Path; from dsh_memory.runtime.config.edit import set_value\n"
        "from dsh_memory.runtime.errors import ConfigError\n"
        "for name in ('config.toml', 'other.toml', 'deep/config.toml'):\n"
        f"  try: set_value(Path({str(place)!r}) / name, 'jev.model', 'b')\n"
        "  except ConfigError as error: print(error.code)\n"
    )
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("unshare is needed to mount a directory read-only")
    script = f'mount --bind {place} {place} && mount -o remount,ro,bind {place} && exec "$@"'
    done = subprocess.run(
        [unshare, "-rm", "sh", "-c", script, "sh", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 and "Traceback" not in done.stderr:
        pytest.skip(f"no read-only mount possible here: {done.stderr.strip()}")
    assert done.stdout.split() == ["CONFIG_WRITE_FAILED"] * 3, done.stderr
    assert [entry.name for entry in place.iterdir()] == ["config.toml"]


def test_problems_are_reported_by_field_without_writing(
    config_file: Path, load_text: Callable[..., LoadedConfig]
) -> None:
    load_text("[jev]\nmodel = 'a'\n")
    before = config_file.read_bytes()
    wrong = find_problems(
        config_file, {"jev.model": "", "jev.base_url": "x", "jev.enabled": True, "no.key": 1}
    )
    assert {key: error.code for key, error in wrong.items()} == {
        "jev.model": "CONFIG_INVALID",
        "jev.base_url": "CONFIG_BASE_URL",
        "no.key": "CONFIG_UNKNOWN_KEY",
    }
    assert list(find_problems(config_file, {"jev.enabled": True})) == ["jev.context_window"]
    assert not find_problems(config_file, {"jev.enabled": True, "jev.context_window": 2048})
    assert not find_problems(config_file, {"jev.model": UNSET})
    assert config_file.read_bytes() == before


def test_line_ends_stay_those_of_the_file(config_file: Path) -> None:
    config_file.write_bytes(b'# mine\r\n[jev]\r\nmodel = "a" # b\r\n')
    apply_changes(config_file, {"jev.context_window": 4096, "recall.cjk_hint": False})
    assert config_file.read_bytes() == (
        b'# mine\r\n[jev]\r\nmodel = "a" # b\r\ncontext_window = 4096\r\n\r\n'
        b"[recall]\r\ncjk_hint = false\r\n"
    )
    config_file.write_bytes(b'[jev]\r\nmodel = "a"\n')
    set_value(config_file, "jev.model", "b")
    assert config_file.read_bytes() == b'[jev]\r\nmodel = "b"\n'


def test_a_byte_order_mark_is_no_part_of_the_text(config_file: Path) -> None:
    config_file.write_bytes(b'\xef\xbb\xbf[jev]\nmodel = "a"\n')
    assert load(config_path=config_file, environ={}).settings.jev.model == "a"
    set_value(config_file, "jev.model", "b")
    assert config_file.read_bytes() == b'[jev]\nmodel = "b"\n'


@pytest.mark.parametrize("key", ["jev.model", "jev.context_window"])
def test_nothing_is_no_value_for_any_key(config_file: Path, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        set_value(config_file, key, None)
    assert caught.value.code == "CONFIG_INVALID"
    assert list(find_problems(config_file, {key: None})) == [key]
    assert not config_file.exists()

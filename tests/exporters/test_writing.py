"""A note is new, private and complete, or it is not there."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dsh_memory.exporters import errors
from dsh_memory.exporters.errors import ObsidianError
from dsh_memory.exporters.note import NoteContent, note_name, note_text
from dsh_memory.exporters.obsidian import write_note

Fill = Callable[..., NoteContent]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    path = tmp_path / "vault"
    path.mkdir()
    return path


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def _names(directory: Path) -> list[str]:
    return [entry.name for entry in directory.iterdir()]


def _refusal(vault: str, content: NoteContent, **options: object) -> ObsidianError:
    with pytest.raises(ObsidianError) as caught:
        write_note(vault, content, **options)  # type: ignore[arg-type]
    assert caught.value.hint or caught.value.code == errors.CANCELLED
    return caught.value


def test_a_note_is_written_completely(vault: Path, pain: str, fill: Fill) -> None:
    content = fill(pain)
    path = write_note(str(vault), content)
    assert path.parent == vault
    assert path.read_bytes() == note_text(content).encode()
    assert _names(vault) == [path.name]
    assert path.name.isascii()
    assert path.name.startswith("2026-01-02T030405Z-recall-")


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o377, 0o777])
def test_the_mode_is_0600_whatever_the_umask(
    vault: Path, fill: Fill, umask: Callable[[int], int], mask: int
) -> None:
    umask(mask)
    path = write_note(str(vault), fill("x"))
    umask(0o022)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_call_makes_a_new_note(vault: Path, fill: Fill) -> None:
    paths = {write_note(str(vault), fill("x")) for _ in range(20)}
    assert len(paths) == len(_names(vault)) == 20


def test_the_vault_may_be_a_symbolic_link(vault: Path, tmp_path: Path, fill: Fill) -> None:
    link = tmp_path / "link"
    link.symlink_to(vault)
    path = write_note(str(link), fill("x"))
    assert path.parent == link
    assert _names(vault) == [path.name]


@pytest.mark.parametrize("kind", ["file", "symlink", "dangling", "directory"])
def test_whatever_has_the_name_already_is_neither_followed_nor_replaced(
    vault: Path, tmp_path: Path, fill: Fill, kind: str
) -> None:
    content = fill("x")
    planted = vault / note_name(content, "t")
    outside = tmp_path / "outside.txt"
    outside.write_text("precious")
    if kind == "file":
        planted.write_text("mine")
    elif kind == "symlink":
        planted.symlink_to(outside)
    elif kind == "dangling":
        planted.symlink_to(tmp_path / "nowhere")
    else:
        planted.mkdir()
    error = _refusal(str(vault), content, token="t")
    assert error.code == errors.NOTE_EXISTS
    assert outside.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()
    assert _names(vault) == [planted.name]
    if kind == "file":
        assert planted.read_text() == "mine"


@pytest.mark.parametrize("path", ["", "vault", "./vault", "~/vault", "/a\0b"])
def test_a_path_that_is_not_absolute_is_refused(path: str, fill: Fill) -> None:
    assert _refusal(path, fill("x")).code == errors.VAULT_INVALID


def test_a_missing_vault_is_refused_and_not_created(tmp_path: Path, fill: Fill) -> None:
    assert _refusal(str(tmp_path / "none"), fill("x")).code == errors.VAULT_MISSING
    assert _names(tmp_path) == []


def test_a_file_or_dangling_link_is_no_vault(tmp_path: Path, fill: Fill) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    assert _refusal(str(tmp_path / "file"), fill("x")).code == errors.VAULT_MISSING
    assert _refusal(str(tmp_path / "dangling"), fill("x")).code == errors.VAULT_MISSING


def test_an_overlong_path_is_refused(fill: Fill) -> None:
    error = _refusal("/" + "a" * 5000, fill("x"))
    assert error.code == errors.VAULT_UNUSABLE
    assert len(error.message) < 400


@pytest.mark.parametrize("looks", range(1, 4))
def test_a_cancelled_note_is_removed(vault: Path, fill: Fill, looks: int) -> None:
    seen = 0

    def cancelled() -> bool:
        nonlocal seen
        seen += 1
        return seen >= looks

    content = fill("x", history="Recorded.\n" + "y" * 70_000)
    assert _refusal(str(vault), content, cancelled=cancelled).code == errors.CANCELLED
    assert _names(vault) == []
    assert seen == looks


def test_an_unexpected_end_removes_the_partial_note(vault: Path, fill: Fill) -> None:
    def interrupt() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_note(str(vault), fill("x"), cancelled=interrupt)
    assert _names(vault) == []


def test_a_foreign_file_that_took_the_place_is_not_removed(vault: Path, fill: Fill) -> None:
    content = fill("x")
    path = vault / note_name(content, "t")

    def swap() -> bool:
        if not path.exists():
            return False
        path.unlink()
        path.write_text("foreign")
        return True

    assert _refusal(str(vault), content, cancelled=swap, token="t").code == errors.CANCELLED
    assert path.read_text() == "foreign"


def test_a_killed_process_leaves_no_partial_note(vault: Path) -> None:
    try:
        os.close(os.open(vault, os.O_WRONLY | os.O_TMPFILE))
    except (AttributeError, OSError):
        pytest.skip("there are no files without a name here")
    child = f"""
import os, signal, sys
sys.argv[1:] = [sys.argv[1], "200000"]
import dsh_memory.exporters.obsidian as obsidian
sync = os.fsync
def killed(file):
    assert os.fstat(file).st_size > 200_000
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = killed
{_CHILD}
"""
    done = subprocess.run([sys.executable, "-c", child, str(vault)], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert _names(vault) == []


def test_a_note_is_written_where_files_need_a_name(
    vault: Path, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = write_note(str(vault), fill("x"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert _names(vault) == [path.name]
    planted = _refusal(str(vault), fill("x"), token=path.stem.rsplit("-", 1)[1])
    assert planted.code == errors.NOTE_EXISTS
    assert _refusal(str(vault), fill("x"), cancelled=lambda: True).code == errors.CANCELLED
    assert _names(vault) == [path.name]


_CHILD = """
import os, sys
from datetime import UTC, datetime
from dsh_memory.exporters.errors import ObsidianError
from dsh_memory.exporters.obsidian import NoteContent, write_note

vault, size = sys.argv[1], int(sys.argv[2])
content = NoteContent(
    kind="recall", query="x", question=None, scope="all", cwd=None, session_id=None, model=None,
    history="Recorded." + "y" * size, page={}, created=datetime.now(UTC),
)
try:
    print("written", write_note(vault, content).name)
except ObsidianError as error:
    print(error.code, sorted(os.listdir(vault)))
    print(error.message, error.hint)
"""


def _in_namespace(script: str, vault: Path, size: int) -> str:
    """Run a shell script with private mounts, then the child that writes a note."""
    probe = subprocess.run(["unshare", "-rm", "true"], capture_output=True)
    if probe.returncode != 0:
        pytest.skip("user and mount namespaces are not available here")
    command = f'{script}\nexec "$PYTHON" -c "$CHILD" "$VAULT" {size}'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-ec", command],
        env={
            **os.environ,
            "PYTHON": sys.executable,
            "CHILD": textwrap.dedent(_CHILD),
            "VAULT": str(vault),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_fails_and_leaves_nothing(vault: Path) -> None:
    script = 'mount -t tmpfs -o size=64k tmpfs "$VAULT"'
    assert _in_namespace(script, vault, 10).startswith("written ")
    output = _in_namespace(script, vault, 200_000)
    assert output.startswith("OBSIDIAN_WRITE_FAILED []")
    assert "space" in output


def test_a_read_only_vault_fails(vault: Path) -> None:
    script = 'mount --bind "$VAULT" "$VAULT" && mount -o remount,ro,bind "$VAULT"'
    output = _in_namespace(script, vault, 10)
    assert output.startswith("OBSIDIAN_WRITE_FAILED []")
    assert "read-only" in output.lower()
    assert _names(vault) == []


def test_a_vault_without_write_permission_fails(vault: Path, fill: Fill) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere; the read-only mount covers the same code")
    vault.chmod(0o555)
    assert _refusal(str(vault), fill("x")).code == errors.WRITE_FAILED
    assert _names(vault) == []

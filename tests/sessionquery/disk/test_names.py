"""Names of project and session directories and of logs."""

from __future__ import annotations

import re

import pytest
from dsh_memory.sessionquery.disk.names import (
    escape_name,
    is_flat_log,
    log_name,
    parse_log_name,
    project_directory,
    session_directory,
)
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        (None, "_no-cwd"),
        ("/", "--root--"),
        ("", "--root--"),
        ("/home/dev/work/ws/项目 β", "--home-dev-work-ws-~9879~76EE~0020~03B2--"),
        ("/srv/build:1//main", "--srv-build-1-main--"),
        ("/a~b", "--a~007Eb--"),
        ("/\U0001f600", "--~D83D~DE00--"),
        ("C:\\w", "--C-w--"),
        ("/" + "x" * 400, "--" + "x" * 251 + "--"),
    ],
)
def test_project_directories(cwd: str | None, name: str) -> None:
    assert project_directory(cwd) == name


@pytest.mark.parametrize(
    ("session_id", "name"),
    [
        (".", "~002E"),
        ("..", "~002E~002E"),
        ("...", "..."),
        ("a/b", "a~002Fb"),
        ("weird id/é~#?", "weird~0020id~002F~00E9~007E~0023~003F"),
        ("session-0a1b", "session-0a1b"),
    ],
)
def test_session_directories(session_id: str, name: str) -> None:
    assert session_directory(session_id) == name


def unescaped(name: str) -> str:
    """Read a name back; the other direction of the escape."""
    data = b""
    for part in re.findall(r"~[0-9A-F]{4}|.", name):
        code = int(part[1:], 16) if len(part) == 5 else ord(part)
        data += code.to_bytes(2, "little")
    return data.decode("utf-16-le", "surrogatepass")


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=40))
def test_escaped_names_are_plain_and_keep_everything(text: str) -> None:
    name = escape_name(text)
    assert re.fullmatch(r"(?:[A-Za-z0-9._-]|~[0-9A-F]{4})*", name)
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert unescaped(name) == joined


@pytest.mark.parametrize("generation", [0, 1, 4, 12])
@pytest.mark.parametrize("encoding", ["plain", "zstd"])
def test_log_names_are_read_back(generation: int, encoding: str) -> None:
    name = log_name(generation, encoding)  # type: ignore[arg-type]
    assert parse_log_name(name) == (generation, encoding)


@pytest.mark.parametrize(
    "name",
    [
        "session.v0.jsonl", "session.v04.jsonl", "session.V4.jsonl", "Session.v4.jsonl",
        "session.v4.jsonl.tmp", "session.v4.jsonl.zst", "session.lock", "session.v.jsonl", "",
        "xsession.jsonl", "session.v4.jsonl\n",
    ],
)  # fmt: skip
def test_other_names_are_no_logs(name: str) -> None:
    assert parse_log_name(name) is None


def test_flat_logs_are_recognized_by_their_ending() -> None:
    assert is_flat_log("old.jsonl")
    assert is_flat_log("old.jsonl.zstd")
    assert not is_flat_log("old.jsonl.tmp")
    assert not is_flat_log("stray.md")

"""Directory scans: what is found, what is listed again, which files are opened."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.discovery import discover, find_session
from dsh_memory.sessionquery.errors import ABORTED, SessionQueryError
from dsh_memory.sessionquery.store.store import SessionStore
from made_stores import MadeStore, user

SIGNAL = AbortSignal()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that sets the wall clock forward, past the inode times of new files."""
    import time

    real = time.time_ns
    offset = 0.0
    monkeypatch.setattr(
        "dsh_memory.sessionquery.disk.discovery.time.time_ns", lambda: real() + int(offset * 1e9)
    )

    def forward(seconds: float) -> None:
        nonlocal offset
        offset += seconds

    return forward


def test_an_absent_or_empty_store_has_no_logs(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    assert discover(store.root, None, signal=SIGNAL).logs == ()
    store.root.mkdir()
    assert discover(store.root, None, signal=SIGNAL).logs == ()


def test_the_highest_generation_is_the_session(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write("s", [user(0)])
    store.write_bytes(store.path("s", generation=3), b"older")
    store.write_bytes(store.path("s", generation=10).with_name("session.v10.jsonl"), b"newer")
    (found,) = discover(store.root, None, signal=SIGNAL).logs
    assert (found.name, found.revision.generation) == ("session.v10.jsonl", 10)


def test_other_files_and_directories_are_ignored(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    path = store.write("s", [user(0)])
    (path.parent / "notes.txt").write_text("x")
    (path.parent / "session.v4.jsonl.abc.tmp").write_text("x")
    (path.parent.parent / "stray.md").write_text("x")
    (path.parent.parent / "empty").mkdir()
    (store.root / "flat.jsonl").write_text("x")
    found = discover(store.root, None, signal=SIGNAL)
    assert [log.directory for log in found.logs] == ["s"]
    assert found.faults == ()


def test_a_log_may_be_a_link_but_no_directory(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    path = store.write("real", [user(0)])
    linked = store.path("linked")
    linked.parent.mkdir()
    linked.symlink_to(path)
    (path.parent.parent / "folder").symlink_to(path.parent)
    found = discover(store.root, None, signal=SIGNAL)
    assert [log.directory for log in found.logs] == ["linked", "real"]


@pytest.mark.parametrize("kind", ["flat", "two-encodings", "directory"])
def test_faults_of_the_store_are_named(kind: str, make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    path = store.write("s", [user(0)])
    match kind:
        case "flat":
            culprit = path.parent.parent / "old.jsonl.zstd"
            culprit.write_text("x")
        case "two-encodings":
            culprit = path.parent
            store.write("s", [user(0)], encoding="zstd")
        case _:
            culprit = store.path("d")
            culprit.mkdir(parents=True)
    (fault,) = discover(store.root, None, signal=SIGNAL).faults
    assert fault.path == str(culprit.relative_to(store.root))


def test_an_unchanged_old_directory_is_not_listed_again(
    make_store: Callable[[], MadeStore], clock: Callable[[float], None]
) -> None:
    store = make_store()
    for name in ("a", "b", "c"):
        store.write(name, [user(0)])
    first = discover(store.root, None, signal=SIGNAL)
    assert first.listed == 5
    assert discover(store.root, first, signal=SIGNAL).listed == 5, "times are too recent to trust"
    clock(10)
    settled = discover(store.root, first, signal=SIGNAL)
    again = discover(store.root, settled, signal=SIGNAL)
    assert (settled.listed, again.listed) == (5, 0)
    with store.path("b").open("ab") as handle:
        handle.write(b"{}\n")
    appended = discover(store.root, again, signal=SIGNAL)
    assert appended.listed == 0, "an append changes no directory"
    assert [log.revision for log in appended.logs] != [log.revision for log in again.logs]
    store.write("d", [user(0)])
    grown = discover(store.root, appended, signal=SIGNAL)
    assert grown.listed == 2
    assert [log.directory for log in grown.logs] == ["a", "b", "c", "d"]


def test_a_replaced_generation_and_a_removed_session_are_noticed(
    make_store: Callable[[], MadeStore], clock: Callable[[float], None]
) -> None:
    store = make_store()
    path = store.write("a", [user(0)])
    store.write("b", [user(0)])
    clock(10)
    first = discover(store.root, None, signal=SIGNAL)
    path.rename(path.with_name("session.v5.jsonl"))
    store.path("b").unlink()
    (found,) = discover(store.root, first, signal=SIGNAL).logs
    assert found.revision.generation == 5


def test_one_session_is_found_without_looking_at_the_others(
    make_store: Callable[[], MadeStore],
) -> None:
    store = make_store()
    store.write("a", [user(0)])
    store.write("a", [user(0)], cwd="/other")
    store.write("b", [user(0)])
    found = find_session(store.root, None, "a", signal=SIGNAL)
    assert [log.project for log in found.logs] == ["--other--", "--w--"]
    assert found.listed == 5


def test_a_scan_can_be_aborted(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write("a", [user(0)])
    with pytest.raises(SessionQueryError) as caught:
        discover(store.root, None, signal=AbortSignal(aborted=True))
    assert caught.value.code == ABORTED


class OpenedFiles:
    """Names of the logs that were opened for reading, as the interpreter audits it."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.active = True
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[object, ...]) -> None:
        if not self.active or event != "open" or "r" not in str(args[1]):
            return
        if str(args[0]).endswith((".jsonl", ".jsonl.zstd")):
            self.names.append(Path(str(args[0])).parent.name)

    def since(self) -> list[str]:
        names, self.names = self.names, []
        return names


@pytest.fixture
def opened() -> Iterator[OpenedFiles]:
    files = OpenedFiles()
    yield files
    files.active = False


def test_headers_of_unchanged_logs_are_remembered(
    make_store: Callable[[], MadeStore],
    opened: OpenedFiles,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = make_store()
    for name in ("a", "b"):
        made.write(name, [user(0)])
    monkeypatch.setattr("dsh_memory.sessionquery.store.store.RECENT_NS", -(10**18))
    store = SessionStore(made.home)
    store.corpus(signal=SIGNAL)
    assert opened.since() == ["a", "b"]
    store.corpus(signal=SIGNAL)
    assert opened.since() == []
    with made.path("b").open("ab") as handle:
        handle.write(b"{}\n")
    store.corpus(signal=SIGNAL)
    assert opened.since() == ["b"]


def test_an_authoritative_header_opens_one_log(
    make_store: Callable[[], MadeStore], opened: OpenedFiles
) -> None:
    made = make_store()
    for name in ("a", "b", "c"):
        made.write(name, [user(0)], origin="subagent" if name == "b" else None)
    assert SessionStore(made.home).observed("b", signal=SIGNAL).header.origin == "subagent"
    assert opened.since() == ["b"]

"""A store with faults: everything fails, or what is faulty is left out and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from dsh_memory.sessionquery import EngineOptions, SessionQueryEngine
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import (
    CORRUPT_SESSION,
    PERSISTENCE_FAILED,
    SESSION_NOT_FOUND,
    SessionQueryError,
)
from dsh_memory.sessionquery.live import LiveSessions
from dsh_memory.sessionquery.model.sessions import SessionHeader
from made_stores import MadeStore, assistant, lines, tool_block, turn_start, user

SIGNAL = AbortSignal()


def misplace(store: MadeStore) -> str:
    path = store.write("x", [user(0)])
    path.parent.rename(path.parent.with_name("y"))
    return "--w--/y/session.v4.jsonl"


def duplicate(store: MadeStore) -> str:
    store.write("x", [user(0)])
    store.write("x", [user(0)], cwd="/v")
    return "--v--/x/session.v4.jsonl"


def misname(store: MadeStore) -> str:
    path = store.write("x", [user(0)], version=3)
    return str(path.relative_to(store.root))


def retire(store: MadeStore) -> str:
    path = store.write("x", [user(0)], sandboxMode="off")
    return str(path.relative_to(store.root))


def flatten(store: MadeStore) -> str:
    store.write_bytes(store.root / "--w--" / "old.jsonl", b"")
    return "--w--/old.jsonl"


FAULTS = [misplace, duplicate, misname, retire, flatten]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_every_operation_and_names_the_file(
    fault: Callable[[MadeStore], str], make_store: Callable[[], MadeStore]
) -> None:
    store = make_store()
    store.write("fine", [user(0)])
    path = fault(store)
    reader = store.reader()
    for call in (
        lambda: reader.list_sessions(signal=SIGNAL),
        lambda: reader.list_events("fine", signal=SIGNAL),
        lambda: reader.trace_session("fine", signal=SIGNAL),
    ):
        with pytest.raises(SessionQueryError) as caught:
            call()
        assert caught.value.code == PERSISTENCE_FAILED
        assert path in caught.value.message
        assert "store.unreadable skip" in (caught.value.hint or "")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_can_be_left_out_and_is_named(
    fault: Callable[[MadeStore], str], make_store: Callable[[], MadeStore]
) -> None:
    store = make_store()
    store.write("fine", [user(0)])
    path = fault(store)
    reader = store.reader(policy="skip")
    assert [record.header.id for record in reader.list_sessions(signal=SIGNAL)] == ["fine"]
    assert len(reader.list_events("fine", signal=SIGNAL)) == 1
    unreadable = reader.list_unreadable(signal=SIGNAL)
    assert path in [entry.path for entry in unreadable]
    assert all(entry.reason and entry.code == PERSISTENCE_FAILED for entry in unreadable)


def test_a_session_that_was_left_out_is_not_called_unknown(
    make_store: Callable[[], MadeStore],
) -> None:
    store = make_store()
    duplicate(store)
    with pytest.raises(SessionQueryError) as caught:
        store.reader(policy="skip").list_events("x", signal=SIGNAL)
    assert caught.value.code == PERSISTENCE_FAILED


def test_everything_that_cannot_be_read_is_listed(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write("fine", [user(0)])
    store.write("corrupt", [turn_start(0, 7)])
    store.write("textless", [user(0, content=[None])])
    store.write_bytes(store.path("empty"), b"")
    store.write_bytes(store.path("newer", generation=7), lines([{"type": "session", "version": 7}]))
    problems = store.reader().list_unreadable(signal=SIGNAL)
    assert {entry.path.split("/")[1]: entry.code for entry in problems} == {
        "corrupt": CORRUPT_SESSION,
        "textless": PERSISTENCE_FAILED,
        "empty": PERSISTENCE_FAILED,
        "newer": PERSISTENCE_FAILED,
    }


def test_a_healthy_session_can_be_observed_beside_a_faulty_one(
    make_store: Callable[[], MadeStore],
) -> None:
    store = make_store()
    store.write("fine", [user(0)])
    misname(store)
    observed = store.reader().observe_session("fine", signal=SIGNAL)
    assert (observed.source, observed.cursor) == ("prepared", 0)


def live_sessions(**changes: object) -> LiveSessions:
    live = LiveSessions()
    values = {"created_at": 1_790_000_000_000, "is_seeded": False, "delegation_depth": None}
    header = SessionHeader(id="live", **(values | {"cwd": "/w"} | changes))  # type: ignore[arg-type]
    session = live.create(header)
    session.append("turn/start", {"turn": 1}, time=5)
    session.append("user/message", user(1, "said")["data"], surface_op="append", time=6)
    session.append(
        "session/title", {"title": "T", "messageSeqs": [1], "source": {"kind": "fallback"}}, time=7
    )
    return live


def test_a_live_session_answers_beside_a_broken_store(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    misname(store)
    reader = store.reader(live=live_sessions())
    assert reader.read_event("live", 1, signal=SIGNAL).target["time"] == 6
    assert [record.surface for record in reader.list_events("live", signal=SIGNAL)] == [
        "log-only", "current", "log-only",
    ]  # fmt: skip
    assert reader.trace_event("live", 1, signal=SIGNAL).target.surface == "current"
    snapshot = reader.read_title_snapshot("live", signal=SIGNAL)
    assert snapshot.title is not None
    assert (snapshot.title.title, snapshot.title.updated_at) == ("T", 7)
    (result, missing) = reader.read_titles(["live", "x"], signal=SIGNAL)
    assert result.value == snapshot
    assert missing.error is not None
    assert missing.error.code == PERSISTENCE_FAILED
    assert reader.observe_session("live", signal=SIGNAL).source == "live"
    with pytest.raises(SessionQueryError) as caught:
        reader.list_sessions(signal=SIGNAL)
    assert caught.value.code == PERSISTENCE_FAILED


def test_an_open_turn_of_a_live_session_is_not_closed(make_store: Callable[[], MadeStore]) -> None:
    reader = make_store().reader(live=live_sessions())
    assert len(reader.read_session("live", signal=SIGNAL).events) == 3


def test_a_live_session_wins_over_its_persisted_log(make_store: Callable[[], MadeStore]) -> None:
    store = make_store()
    store.write("live", [user(0, "older")])
    reader = store.reader(live=live_sessions())
    (record,) = reader.list_sessions(signal=SIGNAL)
    assert (record.live, record.persisted) == (True, True)
    assert len(reader.list_events("live", signal=SIGNAL)) == 3


@pytest.mark.parametrize(
    "changes", [{"created_at": 1}, {"cwd": None}, {"is_seeded": True}, {"origin": "subagent"}]
)
def test_two_sessions_of_one_id_conflict(
    changes: dict[str, object], make_store: Callable[[], MadeStore]
) -> None:
    store = make_store()
    store.write("live", [user(0)])
    with pytest.raises(SessionQueryError) as caught:
        store.reader(live=live_sessions(**changes)).list_sessions(signal=SIGNAL)
    assert caught.value.code == "SESSION_QUERY_SOURCE_CONFLICT"


def test_a_live_session_refuses_contradicting_events(make_store: Callable[[], MadeStore]) -> None:
    live = live_sessions()
    session = live.get("live")
    assert session is not None
    before = session.revision
    with pytest.raises(SessionQueryError) as caught:
        session.append("turn/start", {"turn": 9})
    assert caught.value.code == "SESSION_QUERY_INVALID_SURFACE"
    assert session.revision == before
    # What was refused leaves no traces: the same call may be announced again.
    live_call = {"turn": 1, "step": 1, "stream": [], "usage": {}}
    live_call["message"] = assistant(0, tool_block())["data"]["message"]
    session.append("step/start", {"turn": 1, "step": 1})
    with pytest.raises(SessionQueryError):
        session.append("assistant/message", live_call)
    session.append("assistant/message", live_call, surface_op="append")
    live.remove("live")
    with pytest.raises(SessionQueryError, match='session "live" not found'):
        make_store().reader(live=live).list_events("live", signal=SIGNAL)


@pytest.mark.parametrize("file", ["", "sessions"])
@pytest.mark.anyio
async def test_a_file_where_a_directory_belongs_is_not_an_empty_store(
    tmp_path: Path, file: str
) -> None:
    home = tmp_path / "home"
    if file:
        home.mkdir()
    (home / file).write_text("not a directory")
    async with SessionQueryEngine(EngineOptions(home=str(home), index_path=":memory:")) as engine:
        for ask in (
            engine.list_sessions(),
            engine.search_sessions("word"),
            engine.read_title("s"),
            engine.observe_session("s"),
        ):
            with pytest.raises(SessionQueryError) as caught:
                await ask
            assert caught.value.code == PERSISTENCE_FAILED


@pytest.mark.parametrize("kind", ["file", "link to a file", "loop"])
@pytest.mark.anyio
async def test_observing_a_name_that_is_no_directory_is_a_fault(tmp_path: Path, kind: str) -> None:
    project = tmp_path / "sessions" / "_no-cwd"
    project.mkdir(parents=True)
    (project / "other").write_text("x")
    if kind == "file":
        (project / "odd").write_text("x")
    else:
        (project / "odd").symlink_to("other" if kind == "link to a file" else "odd")
    async with SessionQueryEngine(
        EngineOptions(home=str(tmp_path), index_path=":memory:")
    ) as engine:
        with pytest.raises(SessionQueryError) as caught:
            await engine.observe_session("odd")
        assert caught.value.code == PERSISTENCE_FAILED
        with pytest.raises(SessionQueryError) as caught:
            await engine.list_events("odd")
        assert caught.value.code == SESSION_NOT_FOUND
        assert not await engine.list_sessions()

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.sessionquery.errors import SessionQueryError
from dsh_memory.sessionquery.index.query.cursors import Cursor, decode_cursor
from index_stores import T0, Home, Log, Searcher, user_message

MakeSearcher = Callable[..., Searcher]


def code_of(call: Callable[[], Any]) -> str:
    with pytest.raises(SessionQueryError) as caught:
        call()
    return caught.value.code.removeprefix("SESSION_QUERY_")


def six_sessions(home: Home) -> list[Log]:
    return [
        home.session(f"s{n}", *["newt"] * (6 - n), "more words", created=T0 + n, zstd=n % 2 == 0)
        for n in range(6)
    ]


def first_cursor(search: Searcher, **arguments: Any) -> str:
    cursor = search.sessions("newt", limit=2, **arguments).next_cursor
    assert cursor is not None
    return cursor


def second_page(search: Searcher, cursor: str) -> list[str]:
    return search.ids("newt", limit=2, cursor=cursor)


def test_pages_in_new_processes_are_the_slices_of_one_list(
    home: Home, searcher: MakeSearcher
) -> None:
    six_sessions(home)
    whole = searcher().ids("newt", limit=100)
    pages: list[list[str]] = []
    cursor = None
    while True:
        page = searcher(path=":memory:").sessions("newt", limit=2, cursor=cursor)
        pages.append([hit.header.id for hit in page.items])
        cursor = page.next_cursor
        if cursor is None:
            break
    assert [len(page) for page in pages] == [2, 2, 2]
    assert [name for page in pages for name in page] == whole


def test_a_cursor_is_small_and_says_nothing(home: Home, searcher: MakeSearcher) -> None:
    home.session("secret-id", "secret newt", "newt", cwd="/secret/cwd")
    home.session("secret-id-2", "secret newt", "newt", cwd="/secret/cwd")
    cursor = searcher().sessions("newt", limit=1).next_cursor
    assert cursor is not None
    assert re.fullmatch("[A-Za-z0-9_-]{60,100}", cursor)
    assert b"secret" not in base64.urlsafe_b64decode(cursor + "==")


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text + "=",
        lambda text: ("B" if text[0] == "A" else "A") + text[1:],
        lambda text: text[:30] + ("B" if text[30] == "A" else "A") + text[31:],
        lambda text: text + "\n",
        lambda text: "näh",
        lambda text: "not-a-cursor",
        lambda text: "\ud800",
    ],
)
def test_damaged_cursors_are_invalid(
    home: Home, searcher: MakeSearcher, damage: Callable[[str], str]
) -> None:
    six_sessions(home)
    search = searcher()
    cursor = first_cursor(search)
    assert code_of(lambda: second_page(search, damage(cursor))) == "INVALID_CURSOR"


def test_a_cursor_belongs_to_its_request(home: Home, searcher: MakeSearcher) -> None:
    six_sessions(home)
    search = searcher()
    cursor = first_cursor(search)
    other: list[Callable[[], Any]] = [
        lambda: search.sessions("NEWT", limit=2, cursor=cursor),
        lambda: search.sessions("newt", limit=3, cursor=cursor),
        lambda: search.sessions("newt", cursor=cursor),
        lambda: search.events("s0", "newt", limit=2, cursor=cursor),
        lambda: search.sessions(
            "newt", limit=2, cursor=cursor, session_filters=[{"kind": "cwd", "values": ["/w"]}]
        ),
    ]
    assert [code_of(call) for call in other] == ["INVALID_CURSOR"] * len(other)
    assert search.ids(" newt ", limit=2.0, cursor=cursor) == ["s2", "s3"]


def test_an_offset_of_zero_is_no_cursor() -> None:
    text = Cursor("sessions", b"f" * 12, 1, b"d" * 16, 0).encode()
    with pytest.raises(SessionQueryError, match="invalid"):
        decode_cursor(text, scope="sessions", fingerprint=b"f" * 12)


def test_growth_of_a_session_leaves_the_later_pages_as_they_were(
    home: Home, searcher: MakeSearcher
) -> None:
    logs = six_sessions(home)
    search = searcher()
    whole = search.ids("newt")
    cursor = first_cursor(search)
    for number, log in enumerate(logs):
        log.say("newt " * (50 + number), T0 + 1_000_000)
    assert search.ids("newt", limit=100) != whole
    page = search.sessions("newt", limit=2, cursor=cursor)
    assert [hit.header.id for hit in page.items] == whole[2:4]
    assert page.next_cursor is not None
    assert second_page(search, page.next_cursor) == whole[4:6]


def test_a_session_that_appears_with_later_rows_only_is_not_seen(
    home: Home, searcher: MakeSearcher
) -> None:
    six_sessions(home)
    search = searcher()
    whole = search.ids("newt")
    cursor = first_cursor(search)
    home.session("new", "newt newt newt newt newt newt newt", created=T0 + 10_000_000)
    assert second_page(search, cursor) == whole[2:4]


def test_the_rows_that_closed_an_open_turn_stay_on_later_pages(
    home: Home, searcher: MakeSearcher
) -> None:
    running = home.session("running", "words")
    running.append_rows([{"type": "turn/start", "seq": 1, "time": T0 + 1000, "data": {"turn": 1}}])
    for n in range(3):
        home.session(f"done-{n}", f"interrupted {'x ' * (n + 1)}")
    search = searcher()
    whole = [(hit.header.id, hit.best_match) for hit in search.sessions("interrupted").items]
    assert whole[0][0] == "running"
    assert whole[0][1].type == "turn/end"
    cursor = search.sessions("interrupted", limit=1).next_cursor
    running.append_rows(
        [
            {
                "type": "turn/end",
                "seq": 2,
                "time": T0 + 5_000,
                "data": {"turn": 1, "reason": {"kind": "completed"}},
            }
        ]
    )
    assert search.ids("interrupted") == ["done-0", "done-1", "done-2"]
    rest = []
    while cursor is not None:
        page = search.sessions("interrupted", limit=1, cursor=cursor)
        rest += [(hit.header.id, hit.best_match) for hit in page.items]
        cursor = page.next_cursor
    assert rest == whole[1:]


def test_later_pages_show_surfaces_as_of_the_first(home: Home, searcher: MakeSearcher) -> None:
    home.session("a", "newt newt newt")
    log = home.session("b", "system", "newt newt")
    home.session("c", "newt")
    search = searcher()
    current = [{"kind": "surface", "values": ["current"]}]
    first = search.sessions("newt", limit=1, event_filters=current)
    assert first.next_cursor is not None
    summary = user_message(2, "summary", T0 + 60_000)
    summary["surfaceOp"] = {"op": "replace", "startSeq": 1, "endSeq": 1}
    summary["sourceEventSeqs"] = [1]
    log.append_rows([summary])
    assert search.ids("newt", event_filters=current) == ["a", "c"]
    page = search.sessions("newt", limit=1, event_filters=current, cursor=first.next_cursor)
    assert [(hit.header.id, hit.best_match.surface) for hit in page.items] == [("b", "current")]


def rewrite(home: Home, logs: list[Log]) -> None:
    logs[5].rewrite(
        home.header("s5", created=T0 + 5),
        [user_message(0, "newt x", T0), user_message(1, "more words", T0 + 1000)],
    )


def truncate(home: Home, logs: list[Log]) -> None:
    logs[5].rewrite(home.header("s5", created=T0 + 5), [user_message(0, "newt", T0 + 5)])


def remove(home: Home, logs: list[Log]) -> None:
    logs[5].path.unlink()


def appear(home: Home, logs: list[Log]) -> None:
    home.session("older", "anything", created=T0 - 1000)


def other_header(home: Home, logs: list[Log]) -> None:
    logs[5].rewrite(home.header("s5", created=T0 + 7), logs[5].rows)


@pytest.mark.parametrize("change", [rewrite, truncate, remove, appear, other_header])
def test_a_changed_past_makes_a_sessions_cursor_stale(
    home: Home, searcher: MakeSearcher, change: Callable[[Home, list[Log]], None]
) -> None:
    logs = six_sessions(home)
    search = searcher()
    cursor = first_cursor(search)
    change(home, logs)
    assert code_of(lambda: second_page(search, cursor)) == "STALE_CURSOR"


def test_a_copied_log_and_a_moved_home_keep_a_cursor(
    home: Home, searcher: MakeSearcher, tmp_path: Path
) -> None:
    logs = six_sessions(home)
    cursor = first_cursor(searcher())
    data = logs[3].path.read_bytes()
    logs[3].path.unlink()
    logs[3].path.write_bytes(data)
    assert second_page(searcher(), cursor) == ["s2", "s3"]


def test_cursors_outlive_the_index_file(
    home: Home, searcher: MakeSearcher, index_path: Path
) -> None:
    six_sessions(home)
    search = searcher()
    cursor = first_cursor(search)
    events = search.events("s0", "newt", limit=1).next_cursor
    search.index.close()
    for file in index_path.parent.iterdir():
        file.unlink()
    assert second_page(search, cursor) == ["s2", "s3"]
    assert search.events("s0", "newt", limit=1, cursor=events).items[0].seq == 4


def test_an_events_cursor_follows_its_own_session_only(home: Home, searcher: MakeSearcher) -> None:
    logs = six_sessions(home)
    search = searcher()
    cursor = search.events("s0", "newt", limit=2).next_cursor
    logs[1].say("newt")
    appear(home, logs)
    remove(home, logs)
    page = search.events("s0", "newt", limit=2, cursor=cursor)
    assert [hit.seq for hit in page.items] == [3, 2]
    logs[0].say("anything at all")
    stale = lambda: search.events("s0", "newt", limit=2, cursor=cursor)  # noqa: E731
    assert code_of(stale) == "STALE_CURSOR"


def test_a_missing_session_is_told_before_a_bad_cursor(home: Home, searcher: MakeSearcher) -> None:
    assert code_of(lambda: searcher().events("nope", "x", cursor="bad")) == "SESSION_NOT_FOUND"

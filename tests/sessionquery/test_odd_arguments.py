"""Arguments of every JSON type: answered with a code, never with an exception of another kind."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.sessionquery.engine import SessionQueryEngine
from dsh_memory.sessionquery.errors import PERSISTENCE_FAILED, SESSION_NOT_FOUND, SessionQueryError
from dsh_memory.sessionquery.model.options import EngineOptions
from dsh_memory.sessionquery.operations import OPERATIONS, run_operation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_stores import MadeStore, user

pytestmark = pytest.mark.anyio

KINDS = ("id", "cwd", "parent", "created-at", "availability", "seq", "time", "type", "surface")
scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 20.0, 1.5, float("inf"), 2**53, 2**63, -(2**64), 10**40])
    | st.sampled_from(["", " ", "\0", "\ud800", "newt", "s", "live", "current", '"', "x" * 2000])
    | st.text(max_size=4)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "a"]), inner)
    ),
    max_leaves=4,
)
clauses = st.fixed_dictionaries(
    {"kind": st.sampled_from([*KINDS, "text"]) | scalars},
    optional={
        "values": st.lists(scalars, max_size=3) | values,
        "from": scalars,
        "to": scalars,
        "text": scalars,
    },
)
filters = st.lists(clauses, max_size=3) | values
arguments = st.fixed_dictionaries(
    {},
    optional={
        "sessionId": st.just("s") | values,
        "query": st.just("newt") | values,
        "sessionIds": st.lists(values, max_size=3) | values,
        "filters": filters,
        "sessionFilters": filters,
        "eventFilters": filters,
        **dict.fromkeys(("limit", "cursor", "seq", "before", "after"), values),
    },
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    MadeStore(tmp_path).write("s", [user(0, "newt"), user(1, "another newt")])
    return tmp_path


@pytest.fixture
async def engine(home: Path) -> Any:
    async with SessionQueryEngine(EngineOptions(home=str(home), index_path=":memory:")) as engine:
        yield engine


async def asked(engine: SessionQueryEngine, operation: str, **args: Any) -> Any:
    return await run_operation(engine, operation, args, aborted=False)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(operation=st.sampled_from(sorted(OPERATIONS)), args=arguments)
async def test_arguments_of_any_type_are_answered(
    engine: SessionQueryEngine, operation: str, args: dict[str, Any]
) -> None:
    with contextlib.suppress(SessionQueryError):
        answer = await run_operation(engine, operation, args, aborted=False)
        json.dumps(answer, allow_nan=False)


async def test_titles_of_ids_that_are_no_text_are_rejected_one_by_one(
    engine: SessionQueryEngine,
) -> None:
    answer = await asked(
        engine,
        "readTitleSnapshots",
        sessionIds=[[], {}, 1, True, 1.0, None, float("inf"), "s", "s", {}],
    )
    assert [entry["sessionId"] for entry in answer] == [[], {}, 1, True, None, None, "s", {}]
    assert [entry["status"] for entry in answer] == ["rejected"] * 6 + ["fulfilled", "rejected"]
    assert {entry["reason"]["code"] for entry in answer if "reason" in entry} == {SESSION_NOT_FOUND}


@pytest.mark.parametrize("ids", [5, True, {"a": 1}])
async def test_session_ids_that_are_no_list_are_refused(
    engine: SessionQueryEngine, ids: Any
) -> None:
    with pytest.raises(SessionQueryError):
        await asked(engine, "readTitleSnapshots", sessionIds=ids)


@pytest.mark.parametrize("session_id", ["", [], ["s"], "x" * 300, "数" * 60])
async def test_an_id_without_a_possible_directory_cannot_be_observed(
    engine: SessionQueryEngine, home: Path, session_id: Any
) -> None:
    with pytest.raises(SessionQueryError) as caught:
        await asked(engine, "observeSession", sessionId=session_id)
    assert caught.value.code == PERSISTENCE_FAILED
    with pytest.raises(SessionQueryError) as caught:
        await asked(engine, "readTitle", sessionId=session_id)
    assert caught.value.code == SESSION_NOT_FOUND


@pytest.mark.parametrize("session_id", ["", ["s"], "x" * 300])
async def test_an_empty_store_has_no_session_of_any_id(tmp_path: Path, session_id: Any) -> None:
    async with SessionQueryEngine(EngineOptions(home=str(tmp_path))) as engine:
        with pytest.raises(SessionQueryError) as caught:
            await asked(engine, "observeSession", sessionId=session_id)
    assert caught.value.code == SESSION_NOT_FOUND

"""The declared schemas are closed and fit what is taken and returned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from dsh_memory.pipeline.memory import schemas
from dsh_memory.pipeline.memory.requests import parse_read, parse_search
from dsh_memory.pipeline.memory.results import (
    JevReport,
    ReadEvent,
    ReadResult,
    SearchHit,
    SearchResult,
)
from dsh_memory.pipeline.shared.closed_models import UnreadableSessionReport

HIT: dict[str, Any] = {
    "session_id": "s",
    "cwd": None,
    "created_at": 1,
    "seq": 2,
    "type": "t",
    "time": 3,
    "surface": "current",
    "snippet": "x",
    "snippet_truncated": False,
}


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


@pytest.mark.parametrize(
    "schema",
    [
        schemas.search_result_schema(),
        schemas.read_result_schema(),
        schemas.search_parameters(question_required=False),
        schemas.search_parameters(question_required=True),
        schemas.read_parameters(),
    ],
)
def test_every_object_is_closed(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    found = list(objects(schema))
    assert found
    assert all(item["additionalProperties"] is False for item in found)


def test_a_full_page_fits_its_schema() -> None:
    jev = JevReport(
        model="m",
        threshold=0.5,
        selection="kept",
        context_window=1024,
        reviewed=1,
        kept=1,
        filtered=0,
        segments=1,
        requests=1,
        input_tokens=1,
        elapsed_ms=1,
    )
    unreadable = UnreadableSessionReport(path="p", code="c", reason="r")
    page = SearchResult(
        source="dsh",
        query="q",
        scope="all",
        results=(SearchHit(**HIT, live=False, persisted=True, noul=0.5, echo=True),),
        excluded_subagent_sessions=0,
        next_cursor="c",
        excluded_echoes=0,
        jev=jev,
        diagnostics=("d",),
        unreadable_sessions=(unreadable,),
    ).with_note("/n")
    value = page.to_json()
    jsonschema.validate(value, schemas.search_result_schema())
    assert set(value) == set(schemas.search_result_schema()["properties"])
    for broken in (
        value | {"extra": 1},
        value | {"next_cursor": None},
        value | {"jev": None},
        value | {"results": [HIT | {"live": None}]},
        {name: item for name, item in value.items() if name != "scope"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schemas.search_result_schema())


def test_a_bare_page_has_only_the_fields_that_exist() -> None:
    page = SearchResult(
        source="dsh",
        query="q",
        scope="session",
        results=(SearchHit(**HIT),),
        excluded_subagent_sessions=0,
    )
    value = page.to_json()
    assert value["results"] == [HIT]
    assert set(value) == {"source", "query", "scope", "results", "excluded_subagent_sessions"}
    jsonschema.validate(value, schemas.search_result_schema())


def test_a_window_fits_its_schema() -> None:
    event = ReadEvent(seq=1, type="t", time=2, text="", text_truncated=False)
    window = ReadResult(
        source="dsh",
        session_id="s",
        cwd=None,
        created_at=1,
        target_seq=1,
        start_seq=1,
        end_seq=1,
        inherited_event_count=0,
        events=(event,),
        truncated=False,
    )
    jsonschema.validate(window.to_json(), schemas.read_result_schema())
    assert set(window.to_json()) == set(schemas.read_result_schema()["required"])


def test_the_parameters_describe_what_is_accepted() -> None:
    search = {"query": "x", **dict.fromkeys(("question", "session_id", "cwd", "limit", "cursor"))}
    jsonschema.validate(search, schemas.search_parameters(question_required=False))
    parse_search(search)
    read = {"session_id": "s", "seq": 0.0, "before": None, "after": 20, "max_chars": None}
    jsonschema.validate(read, schemas.read_parameters())
    parse_read(read)
    for broken in ({"query": None}, {"query": "x", "limit": 51}, {"query": "x", "a": 1}, {}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schemas.search_parameters(question_required=False))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(search, schemas.search_parameters(question_required=True))

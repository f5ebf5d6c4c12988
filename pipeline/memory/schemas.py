"""JSON Schemas of requests and results, for tools that declare what they take and return."""

from __future__ import annotations

from functools import cache
from typing import Any

from dsh_memory.pipeline.memory import requests
from dsh_memory.pipeline.memory.results import ReadResult, SearchResult
from dsh_memory.pipeline.shared import request_fields
from dsh_memory.pipeline.shared.closed_models import Closed
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

Schema = dict[str, Any]


class _Absent(GenerateJsonSchema):
    """An optional field of a result is absent or has a value; it is never null."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        inner = schema["schema"]
        if schema.get("default", ...) is None and inner["type"] == "nullable":
            return self.generate_inner(inner["schema"])
        return super().default_schema(schema)


@cache
def search_result_schema() -> Schema:
    """The closed schema of `SearchResult.to_json()`."""
    return result_schema(SearchResult)


@cache
def read_result_schema() -> Schema:
    """The closed schema of `ReadResult.to_json()`."""
    return result_schema(ReadResult)


def result_schema(model: type[Closed]) -> Schema:
    """The closed schema of a result's `to_json()`: optional fields are absent, never null."""
    return _bare(model.model_json_schema(schema_generator=_Absent))


def search_parameters(*, question_required: bool) -> Schema:
    """The parameters of ``recall_memory``; with a required question of ``review_jev_filtered``."""
    question = _text("The user's complete question; required with Jev.", requests.QUESTION_UNITS)
    properties: Schema = {
        "query": _text(
            "Literal word or phrase: tokens, no substrings, no operators.",
            request_fields.QUERY_UNITS,
        ),
        "question": question if question_required else _nullable(question),
        "session_id": _nullable(
            _text("Exact session to search within; not with cwd.", request_fields.SESSION_ID_UNITS)
        ),
        "cwd": _nullable(
            _text("Exact recorded directory; omitted: all sessions.", requests.CWD_UNITS)
        ),
        "limit": _nullable(
            _integer("Page size.", 1, requests.LIMIT_MAXIMUM, requests.LIMIT_DEFAULT)
        ),
        "cursor": _nullable(
            _text("next_cursor of the previous page; repeat the rest.", request_fields.CURSOR_UNITS)
        ),
    }
    return _closed(properties, ["query", "question"] if question_required else ["query"])


def read_parameters() -> Schema:
    """The parameters of ``fetch_session``."""
    context = (0, requests.CONTEXT_MAXIMUM, requests.CONTEXT_DEFAULT)
    properties: Schema = {
        "session_id": _text("Exact session id of a hit.", request_fields.SESSION_ID_UNITS),
        "seq": {"type": "integer", "minimum": 0, "description": "Event number of a hit."},
        "before": _nullable(_integer("Events before it.", *context)),
        "after": _nullable(_integer("Events after it.", *context)),
        "max_chars": _nullable(
            _integer(
                "Text budget; the target comes first.",
                requests.CHARS_MINIMUM,
                requests.CHARS_MAXIMUM,
                requests.CHARS_DEFAULT,
            )
        ),
    }
    return _closed(properties, ["session_id", "seq"])


def _bare(schema: Schema) -> Schema:
    """Drop titles and docstrings: a caller needs neither, and each costs space in its context."""
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("description", None)
        part.pop("title", None)
        for field in part["properties"].values():
            field.pop("title", None)
    return schema


def _text(description: str, units: int) -> Schema:
    return {"type": "string", "maxLength": units, "description": description}


def _integer(description: str, low: int, high: int, default: int) -> Schema:
    return {
        "type": "integer",
        "minimum": low,
        "maximum": high,
        "default": default,
        "description": description,
    }


def _nullable(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _closed(properties: Schema, required: list[str]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }

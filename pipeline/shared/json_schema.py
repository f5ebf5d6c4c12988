"""Pieces of the JSON schemas that tools declare for their parameters."""

from __future__ import annotations

from typing import Any, Final

from dsh_memory.pipeline.shared.request_fields import LIST_MAXIMUM

Schema = dict[str, Any]


QUERY: Final = "Literal word or phrase: tokens, no substrings, no operators."


def choices(description: str, *values: str) -> Schema:
    items = {"type": "string", "enum": list(values)}
    return optional({"type": "array", "minItems": 1, "items": items, "description": description})


def texts(description: str, units: int) -> Schema:
    return optional(
        {
            "type": "array",
            "minItems": 1,
            "maxItems": LIST_MAXIMUM,
            "items": {"type": "string", "maxLength": units},
            "description": description,
        }
    )


def text(description: str, units: int) -> Schema:
    return {"type": "string", "maxLength": units, "description": description}


def integer(
    description: str, low: int, high: int | None = None, default: int | None = None
) -> Schema:
    schema: Schema = {"type": "integer", "minimum": low}
    if high is not None:
        schema["maximum"] = high
    if default is not None:
        schema["default"] = default
    return {**schema, "description": description}


def optional(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def closed(required: list[str], **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }

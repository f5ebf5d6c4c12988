"""Fields of requests: checked values with messages that name the field and show the value.

The meaning of text length (UTF-16 units, measured before trimming), of blanks and of integers (20.0
is 20; "20" and true are none) is JavaScript's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from dsh_memory.pipeline.shared.errors import RequestError, clipped, shown
from dsh_memory.sessionquery.js.text import (
    MAX_SAFE_INTEGER,
    is_safe_integer,
    replace_surrogates,
    trim,
    utf16_length,
)
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

HINT: Final = "Run memory-help for the fields and their limits."


class Request(BaseModel):
    """A request: immutable, without coercion, closed to unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


R = TypeVar("R", bound=Request)


def text(units: int) -> BeforeValidator:
    """Text of 1 to `units` UTF-16 units that is not blank; trimmed."""

    def check(value: object, info: ValidationInfo) -> str:
        if not isinstance(value, str):
            raise refusal(f"{info.field_name} must be text, not {shown(value)}.")
        whole = replace_surrogates(value)
        length = utf16_length(whole)
        if length > units:
            raise refusal(
                f"{info.field_name} has {length} characters; at most {units} are allowed."
            )
        trimmed = trim(whole)
        if not trimmed:
            raise refusal(f"{info.field_name} must not be blank.")
        return trimmed

    return BeforeValidator(check)


def integer(low: int, high: int, default: int | None = None) -> BeforeValidator:
    """A whole number from `low` to `high`; null stands for `default` if there is one."""
    limit = "2^53-1" if high == MAX_SAFE_INTEGER else str(high)

    def check(value: object, info: ValidationInfo) -> int:
        if value is None and default is not None:
            return default
        if not is_safe_integer(value) or not low <= value <= high:
            raise refusal(
                f"{info.field_name} must be a whole number from {low} to {limit}, "
                f"not {shown(value)}."
            )
        return int(value)

    return BeforeValidator(check)


def refusal(message: str) -> PydanticCustomError:
    """What a validator raises to refuse a value with `message`."""
    return PydanticCustomError("request", "{message}", {"message": message})


def known_fields(value: object, model: type[Request], *, hint: str = HINT) -> dict[str, Any]:
    """Return the fields of a request object; unknown and missing ones are refused by name.

    Raises:
        RequestError: ``REQUEST_INVALID``.
    """
    if not isinstance(value, Mapping):
        raise RequestError(f"A request must be an object, not {shown(value)}.", hint=hint)
    known = model.model_fields
    for name in value:
        if name not in known:
            raise RequestError(
                f"Unknown field {clipped(str(name))!r}.", hint=f"Known: {', '.join(known)}."
            )
    for name, field in known.items():
        if field.is_required() and name not in value:
            raise RequestError(f"{name} is required.", hint=hint)
    return dict(value)


def checked(model: type[R], fields: Mapping[str, Any], *, hint: str = HINT) -> R:
    """Validate `fields` as a `model`.

    Raises:
        RequestError: ``REQUEST_INVALID`` with the first problem.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise RequestError(error.errors()[0]["msg"], hint=hint) from None


LIST_MAXIMUM: Final = 100
"""Most values of one list."""


QUERY_UNITS: Final = 1000


SESSION_ID_UNITS: Final = 2000


CURSOR_UNITS: Final = 16000

"""The requests of the three memory operations: checked, normalized, and closed to unknown fields.

Limits and rules are those of documents 000 and 003, with JavaScript's meaning of text length
(UTF-16 units, measured before trimming), of blanks and of integers (20.0 is 20; "20" and true are
none).
``null`` stands for an omitted optional field and is refused for a required one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from pipeline.errors import QUESTION_REQUIRED, RequestError, clipped, shown
from sessionquery.jstext import (
    MAX_SAFE_INTEGER,
    collapse_blanks,
    is_safe_integer,
    replace_surrogates,
    trim,
    utf16_length,
)

QUERY_UNITS: Final = 1000
QUESTION_UNITS: Final = 1000
SESSION_ID_UNITS: Final = 2000
CWD_UNITS: Final = 4000
CURSOR_UNITS: Final = 16000
LIMIT_DEFAULT: Final = 20
LIMIT_MAXIMUM: Final = 50
CONTEXT_DEFAULT: Final = 4
CONTEXT_MAXIMUM: Final = 20
CHARS_DEFAULT: Final = 12000
CHARS_MINIMUM: Final = 100
CHARS_MAXIMUM: Final = 24000

HINT: Final = "Run memory-help for the fields and their limits."


def _text(units: int) -> BeforeValidator:
    def check(value: object, info: ValidationInfo) -> str:
        if not isinstance(value, str):
            raise _refusal(f"{info.field_name} must be text, not {shown(value)}.")
        whole = replace_surrogates(value)
        length = utf16_length(whole)
        if length > units:
            raise _refusal(
                f"{info.field_name} has {length} characters; at most {units} are allowed."
            )
        trimmed = trim(whole)
        if not trimmed:
            raise _refusal(f"{info.field_name} must not be blank.")
        return trimmed

    return BeforeValidator(check)


def _integer(low: int, high: int, default: int | None = None) -> BeforeValidator:
    limit = "2^53-1" if high == MAX_SAFE_INTEGER else str(high)

    def check(value: object, info: ValidationInfo) -> int:
        if value is None and default is not None:
            return default
        if not is_safe_integer(value) or not low <= value <= high:
            raise _refusal(
                f"{info.field_name} must be a whole number from {low} to {limit}, "
                f"not {shown(value)}."
            )
        return int(value)

    return BeforeValidator(check)


def _refusal(message: str) -> PydanticCustomError:
    return PydanticCustomError("request", "{message}", {"message": message})


Limit = Annotated[int, _integer(1, LIMIT_MAXIMUM, LIMIT_DEFAULT)]
Context = Annotated[int, _integer(0, CONTEXT_MAXIMUM, CONTEXT_DEFAULT)]
Chars = Annotated[int, _integer(CHARS_MINIMUM, CHARS_MAXIMUM, CHARS_DEFAULT)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SearchRequest(_Request):
    """A page of literal search (``recall_memory``) or its review (``review_jev_filtered``).

    `query` is trimmed with its blanks collapsed; `cwd` and `session_id` exclude each other.
    """

    query: Annotated[str, BeforeValidator(collapse_blanks), _text(QUERY_UNITS)]
    question: Annotated[str, _text(QUESTION_UNITS)] | None = None
    session_id: Annotated[str, _text(SESSION_ID_UNITS)] | None = None
    cwd: Annotated[str, _text(CWD_UNITS)] | None = None
    limit: Limit = LIMIT_DEFAULT
    cursor: Annotated[str, _text(CURSOR_UNITS)] | None = None

    @property
    def scope(self) -> Literal["session", "cwd", "all"]:
        """``session``, ``cwd`` or ``all``."""
        if self.session_id is not None:
            return "session"
        return "all" if self.cwd is None else "cwd"


class ReadRequest(_Request):
    """A bounded window of one session around event `seq` (``fetch_session``)."""

    session_id: Annotated[str, _text(SESSION_ID_UNITS)]
    seq: Annotated[int, _integer(0, MAX_SAFE_INTEGER)]
    before: Context = CONTEXT_DEFAULT
    after: Context = CONTEXT_DEFAULT
    max_chars: Chars = CHARS_DEFAULT


R = TypeVar("R", bound=_Request)


def parse_search(value: object, *, review: bool = False) -> SearchRequest:
    """Check a search or review request of any JSON type.

    Raises:
        RequestError: ``REQUEST_INVALID``; ``REQUEST_QUESTION_REQUIRED`` for a review without a
            question (also when it is null).
    """
    fields = _fields(value, SearchRequest)
    if review and fields.get("question") is None:
        raise question_required("A review")
    request = _checked(SearchRequest, fields)
    if request.session_id is not None and request.cwd is not None:
        raise RequestError("session_id and cwd exclude each other.", hint="Leave one of them out.")
    return request


def parse_read(value: object) -> ReadRequest:
    """Check a read request of any JSON type.

    Raises:
        RequestError: ``REQUEST_INVALID``.
    """
    return _checked(ReadRequest, _fields(value, ReadRequest))


def question_required(what: str) -> RequestError:
    """The refusal of `what` when it lacks the user's question."""
    return RequestError(
        f"{what} needs the user's complete question.",
        code=QUESTION_REQUIRED,
        hint="Give `question` (--question on the command line).",
    )


def _fields(value: object, model: type[BaseModel]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise RequestError(f"A request must be an object, not {shown(value)}.", hint=HINT)
    known = model.model_fields
    for name in value:
        if name not in known:
            raise RequestError(
                f"Unknown field {clipped(str(name))!r}.", hint=f"Known: {', '.join(known)}."
            )
    for name, field in known.items():
        if field.is_required() and name not in value:
            raise RequestError(f"{name} is required.", hint=HINT)
    return dict(value)


def _checked(model: type[R], fields: dict[str, Any]) -> R:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise RequestError(error.errors()[0]["msg"], hint=HINT) from None

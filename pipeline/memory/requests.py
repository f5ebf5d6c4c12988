"""The requests of the three memory operations: checked, normalized, and closed to unknown fields.

Limits and rules are those of documents 000 and 003, with JavaScript's meaning of text length
(UTF-16 units, measured before trimming), of blanks and of integers (20.0 is 20; "20" and true are
none).
``null`` stands for an omitted optional field and is refused for a required one.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from dsh_memory.pipeline.shared.errors import QUESTION_REQUIRED, RequestError
from dsh_memory.pipeline.shared.request_fields import (
    CURSOR_UNITS,
    QUERY_UNITS,
    SESSION_ID_UNITS,
    Request,
    checked,
    integer,
    known_fields,
    text,
)
from dsh_memory.sessionquery.js.text import MAX_SAFE_INTEGER, collapse_blanks
from pydantic import BeforeValidator

QUESTION_UNITS: Final = 1000
CWD_UNITS: Final = 4000
LIMIT_DEFAULT: Final = 20
LIMIT_MAXIMUM: Final = 50
CONTEXT_DEFAULT: Final = 4
CONTEXT_MAXIMUM: Final = 20
CHARS_DEFAULT: Final = 12000
CHARS_MINIMUM: Final = 100
CHARS_MAXIMUM: Final = 24000

Limit = Annotated[int, integer(1, LIMIT_MAXIMUM, LIMIT_DEFAULT)]
Context = Annotated[int, integer(0, CONTEXT_MAXIMUM, CONTEXT_DEFAULT)]
Chars = Annotated[int, integer(CHARS_MINIMUM, CHARS_MAXIMUM, CHARS_DEFAULT)]


class SearchRequest(Request):
    """A page of literal search (``recall_memory``) or its review (``review_jev_filtered``).

    `query` is trimmed with its blanks collapsed; `cwd` and `session_id` exclude each other.
    """

    query: Annotated[str, BeforeValidator(collapse_blanks), text(QUERY_UNITS)]
    question: Annotated[str, text(QUESTION_UNITS)] | None = None
    session_id: Annotated[str, text(SESSION_ID_UNITS)] | None = None
    cwd: Annotated[str, text(CWD_UNITS)] | None = None
    limit: Limit = LIMIT_DEFAULT
    cursor: Annotated[str, text(CURSOR_UNITS)] | None = None

    @property
    def scope(self) -> Literal["session", "cwd", "all"]:
        """``session``, ``cwd`` or ``all``."""
        if self.session_id is not None:
            return "session"
        return "all" if self.cwd is None else "cwd"


class ReadRequest(Request):
    """A bounded window of one session around event `seq` (``fetch_session``)."""

    session_id: Annotated[str, text(SESSION_ID_UNITS)]
    seq: Annotated[int, integer(0, MAX_SAFE_INTEGER)]
    before: Context = CONTEXT_DEFAULT
    after: Context = CONTEXT_DEFAULT
    max_chars: Chars = CHARS_DEFAULT


def parse_search(value: object, *, review: bool = False) -> SearchRequest:
    """Check a search or review request of any JSON type.

    Raises:
        RequestError: ``REQUEST_INVALID``; ``REQUEST_QUESTION_REQUIRED`` for a review without a
            question (also when it is null).
    """
    fields = known_fields(value, SearchRequest)
    if review and fields.get("question") is None:
        raise question_required("A review")
    request = checked(SearchRequest, fields)
    if request.session_id is not None and request.cwd is not None:
        raise RequestError("session_id and cwd exclude each other.", hint="Leave one of them out.")
    return request


def parse_read(value: object) -> ReadRequest:
    """Check a read request of any JSON type.

    Raises:
        RequestError: ``REQUEST_INVALID``.
    """
    return checked(ReadRequest, known_fields(value, ReadRequest))


def question_required(what: str) -> RequestError:
    """The refusal of `what` when it lacks the user's question."""
    return RequestError(
        f"{what} needs the user's complete question.",
        code=QUESTION_REQUIRED,
        hint="Give `question` (--question on the command line).",
    )

"""Reading a System One answer: everything that was asked, nothing else, or an error.

A score that is missing or malformed is never taken for 0: it would silently drop a hit.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Final

from dsh_memory.classifier.budget import item_id
from dsh_memory.classifier.errors import (
    JEV_INVALID_ANSWER,
    JEV_NOT_JSON,
    JEV_SERVER_FAILED,
    JevError,
    visible,
)

MOST_TOKENS: Final = 2**53 - 1
"""The largest count that every reader of the result can take for a whole number."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The scores of one request.

    Attributes:
        nouls: P(true) of each item, 0..1, in the order of the items.
        input_tokens: What the server says it read; 0 when it does not tell.
    """

    nouls: tuple[float, ...]
    input_tokens: int


def parse(content: bytes, asked: int) -> Answer:
    """Validate the body of a successful response.

    Args:
        content: The body as received.
        asked: How many items the request had.

    Raises:
        JevError: ``JEV_NOT_JSON`` when it is no JSON object, ``JEV_SERVER_FAILED`` when it is an
            error in a successful response, ``JEV_INVALID_ANSWER`` for everything else that is
            not exactly one valid noul for each item; the message names item and value.
    """
    document = _object(content)
    if "answers" not in document and document.get("error"):
        raise JevError(
            JEV_SERVER_FAILED, f"The server answered with an error: {_shown(document['error'])}"
        )
    answers = document.get("answers")
    if not isinstance(answers, dict):
        raise JevError(
            JEV_INVALID_ANSWER, f"The answer has no object `answers`, but {_shown(answers)}."
        )
    expected = [item_id(position) for position in range(asked)]
    missing = [name for name in expected if name not in answers]
    if missing:
        raise JevError(
            JEV_INVALID_ANSWER,
            f"The answer lacks {missing[0]}{_and_more(missing)}; {asked} items were asked.",
        )
    extra = [name for name in answers if name not in set(expected)]
    if extra:
        raise JevError(
            JEV_INVALID_ANSWER,
            f"The answer holds {visible(extra[0], 60)!r}{_and_more(extra)}, which was not asked.",
        )
    nouls = tuple(_noul(name, answers[name]) for name in expected)
    return Answer(nouls, _input_tokens(document.get("usage")))


def _object(content: bytes) -> dict[str, Any]:
    if not content.strip():
        raise JevError(JEV_NOT_JSON, "The server answered with an empty body.")
    try:
        document = json.loads(content.decode(), object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        shown = visible(content[:2000].decode(errors="replace"), 120)
        raise JevError(JEV_NOT_JSON, f"The server's answer is no JSON: {shown}") from error
    if not isinstance(document, dict):
        raise JevError(JEV_NOT_JSON, f"The server's answer is no object: {_shown(document)}")
    return document


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise JevError(JEV_INVALID_ANSWER, f"The answer holds {visible(twice, 60)!r} twice.")
    return mapping


def _noul(name: str, value: object) -> float:
    if not isinstance(value, dict):
        raise JevError(JEV_INVALID_ANSWER, f"The answer to {name} is no object: {_shown(value)}")
    if value.get("type") != "noul":
        raise JevError(
            JEV_INVALID_ANSWER,
            f"The answer to {name} has the type {_shown(value.get('type'))}, not 'noul'.",
        )
    if "noul" not in value:
        raise JevError(JEV_INVALID_ANSWER, f"The answer to {name} has no noul.")
    noul = value["noul"]
    number = isinstance(noul, int | float) and not isinstance(noul, bool)
    # The comparison comes before `isfinite`, which cannot take an integer beyond all floats.
    if not number or not 0 <= noul <= 1 or not math.isfinite(noul):
        raise JevError(
            JEV_INVALID_ANSWER,
            f"The noul of {name} is {_shown(noul)}, not a number from 0 to 1.",
        )
    return float(noul)


def _input_tokens(usage: object) -> int:
    if usage is None:
        return 0
    if not isinstance(usage, dict):
        raise JevError(JEV_INVALID_ANSWER, f"The answer's usage is no object: {_shown(usage)}")
    tokens = usage.get("input_tokens", 0)
    if isinstance(tokens, float) and tokens.is_integer():
        tokens = int(tokens)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or not 0 <= tokens <= MOST_TOKENS:
        raise JevError(
            JEV_INVALID_ANSWER, f"The answer's input_tokens is {_shown(tokens)}, not a count."
        )
    return tokens


def _and_more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


def _shown(value: object) -> str:
    """Return a foreign JSON value as JSON, clipped; an integer of any length is safe here."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**20:
        return "a number beyond 1e20"
    try:
        return visible(json.dumps(value, ensure_ascii=False), 80)
    except RecursionError:
        return "a deeply nested value"

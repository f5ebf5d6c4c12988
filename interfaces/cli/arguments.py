"""From the words of a command line to the request object that every interface uses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dsh_memory.interfaces.cli.options import current_directory
from dsh_memory.pipeline.shared.errors import RequestError

JSON_HINT = "Run memory-help for examples."


def request_from_words(words: Sequence[str], options: Mapping[str, Any]) -> object:
    """Return the request that a phrase with options, or one JSON argument, stands for.

    Args:
        words: The positional arguments; joined by one blank, or one argument starting with ``{``.
        options: Request fields given as options; None means not given.

    Raises:
        RequestError: Nothing was given, the JSON does not parse, or JSON and options are mixed.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if is_json(words):
        return json_request(words[0], given)
    if not words:
        raise RequestError("Nothing to search for.", hint="Give a phrase or a JSON object.")
    return {"query": " ".join(words), **given}


def is_json(words: Sequence[str]) -> bool:
    """Whether the command line is one JSON request."""
    return len(words) == 1 and words[0].lstrip().startswith("{")


def json_request(text: str, given: Mapping[str, Any]) -> object:
    """Return the request of a JSON argument, beside which no request option may stand.

    Raises:
        RequestError: `given` is not empty, or the text is not JSON.
    """
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise RequestError(
            f"A JSON request cannot be mixed with {names}.",
            hint="Put these fields into the JSON object.",
        )
    return parse_json(text)


def event_number(text: str, *, hint: str) -> int:
    """Return the event number that a command line gives.

    Raises:
        RequestError: The text is not a non-negative whole number; `hint` is the remedy.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise RequestError(
            f"seq must be a non-negative whole number, not {text[:100]!r}.", hint=hint
        )
    return int(text)


def parse_json(text: str) -> object:
    """Parse a JSON request; ``NaN`` and the like are refused.

    Raises:
        RequestError: The text is not JSON.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"The JSON request cannot be read: {error}", hint=JSON_HINT) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def working_directory(cwd: str | None, *, here: bool) -> str | None:
    """Return the directory filter of ``--cwd`` or ``--here``, taken verbatim.

    Raises:
        RequestError: Both were given, or ``--cwd`` is not absolute.
    """
    if here:
        if cwd is not None:
            raise RequestError("Use --cwd or --here, not both.", hint="Leave one of them out.")
        return str(current_directory())
    if cwd is not None and not cwd.startswith("/"):
        raise RequestError(
            f"--cwd must be an absolute directory, not {cwd[:200]!r}.",
            hint="Sessions record absolute directories; use --here for the current one.",
        )
    return cwd

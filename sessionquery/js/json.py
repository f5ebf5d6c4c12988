"""JSON as JavaScript reads it.

`orjson` reads almost every row. What it refuses goes through the standard library with
JavaScript's rules: invalid UTF-8 becomes U+FFFD, escaped lone surrogates stay, out-of-range
numbers become infinite, and the literals ``NaN`` and ``Infinity`` are syntax errors. Both keep the
last of duplicate keys.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import orjson

_MAX_EXACT_DIGITS = 15


class JsonError(ValueError):
    """The text is not JSON in JavaScript's sense."""


class JsonDepthError(JsonError):
    """The text nests deeper than this program can follow."""


def parse_json(line: bytes | memoryview) -> Any:
    """Parse one line.

    Raises:
        JsonError: Not JSON.
        JsonDepthError: Nested about a thousand levels deep or more.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return parse_refused(line)


def parse_refused(line: bytes | memoryview) -> Any:
    """Parse a line that `orjson` refuses; raises as `parse_json`."""
    return _parse_like_javascript(bytes(line).decode("utf-8", "replace"))


def _refuse(literal: str) -> NoReturn:
    raise JsonError(f"{literal} is not JSON")


def _integer(digits: str) -> int | float:
    # A double, as JavaScript has it; also keeps int() away from digit runs of any length.
    return int(digits) if len(digits) <= _MAX_EXACT_DIGITS else _exact(float(digits))


def _exact(number: float) -> int | float:
    return int(number) if abs(number) < 1e21 else number


def _parse_like_javascript(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=_integer)
    except RecursionError as error:
        raise JsonDepthError("nested too deeply") from error
    except JsonError:
        raise
    except ValueError as error:
        raise JsonError(str(error)) from error

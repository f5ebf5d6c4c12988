"""Shapes of JSON values, written as data: predicates that can be nested.

A shape is closed: an object with a key that the shape does not name does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeGuard

from dsh_memory.sessionquery.js.text import (
    MAX_SAFE_INTEGER,
    is_count,
    is_finite_number,
    is_safe_integer,
)

Check: TypeAlias = Callable[[Any], bool]


class Maybe:
    """Marks a key of a `Shape` that may be absent."""

    __slots__ = ("check",)

    def __init__(self, check: Check) -> None:
        self.check = check


class Shape:
    """An object with exactly these keys; ``Shape(id=name, note=Maybe(text))``."""

    __slots__ = ("_optional", "_required")

    def __init__(self, **keys: Check | Maybe) -> None:
        self._required = tuple(
            (key, check) for key, check in keys.items() if not isinstance(check, Maybe)
        )
        self._optional = tuple(
            (key, check.check) for key, check in keys.items() if isinstance(check, Maybe)
        )

    def __call__(self, value: Any) -> TypeGuard[dict[str, Any]]:
        if value.__class__ is not dict:
            return False
        for key, check in self._required:
            if key not in value or not check(value[key]):
                return False
        further = len(value) - len(self._required)
        if further:
            for key, check in self._optional:
                if key in value:
                    if not check(value[key]):
                        return False
                    further -= 1
        return further == 0


def anything(value: Any) -> bool:
    return True


def text(value: Any) -> bool:
    return value.__class__ is str


def name(value: Any) -> TypeGuard[str]:
    """A string that is not empty."""
    return value.__class__ is str and value != ""


def boolean(value: Any) -> bool:
    return value is True or value is False


def true(value: Any) -> bool:
    return value is True


def mapping(value: Any) -> bool:
    """An object with any keys."""
    return value.__class__ is dict


def count(value: Any) -> bool:
    if value.__class__ is int:
        return 0 <= value <= MAX_SAFE_INTEGER
    return is_count(value)


def positive(value: Any) -> bool:
    return is_count(value) and value >= 1


def count_or_null(value: Any) -> bool:
    return value is None or is_count(value)


def integer(value: Any) -> bool:
    if value.__class__ is int:
        return -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER
    return is_safe_integer(value)


def integers(value: Any) -> bool:
    """A list of safe integers; quick for long lists."""
    if value.__class__ is not list:
        return False
    if set(map(type, value)) == {int}:
        return bool(min(value) >= -MAX_SAFE_INTEGER and max(value) <= MAX_SAFE_INTEGER)
    return all(map(is_safe_integer, value))


def texts(value: Any) -> bool:
    """A list of strings that is not empty; quick for long lists."""
    return value.__class__ is list and set(map(type, value)) == {str}


def number(value: Any) -> bool:
    return is_finite_number(value)


_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def instant(value: Any) -> bool:
    """A UTC time as JavaScript's ``toISOString()`` writes it."""
    return value.__class__ is str and _INSTANT.fullmatch(value) is not None


def one_of(*values: Any) -> Check:
    """One of these strings or numbers."""
    allowed = frozenset(values)

    def check(value: Any) -> bool:
        return value.__class__ in (str, int, float) and value in allowed

    return check


def at_least(least: int) -> Check:
    """A count of `least` or more."""

    def check(value: Any) -> bool:
        return is_count(value) and value >= least

    return check


def list_of(item: Check, *, least: int = 0, most: int | None = None) -> Check:
    """A list of `least` to `most` items."""

    def check(value: Any) -> bool:
        if value.__class__ is not list or len(value) < least:
            return False
        if most is not None and len(value) > most:
            return False
        # A plain loop: a generator would double the cost of these short lists.
        for member in value:  # noqa: SIM110
            if not item(member):
                return False
        return True

    return check


def variants(key: str, table: Mapping[str, Check]) -> Check:
    """An object whose string under `key` selects the shape."""

    def check(value: Any) -> bool:
        tag = value.get(key) if value.__class__ is dict else None
        shape = table.get(tag) if tag.__class__ is str else None
        return shape is not None and shape(value)

    return check


def both(first: Check, second: Check) -> Check:
    """Fits `first` and then `second`."""

    def check(value: Any) -> bool:
        return first(value) and second(value)

    return check

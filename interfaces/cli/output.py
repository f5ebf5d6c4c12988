"""Writing to the terminal: data on stdout, everything else on stderr, history always inert."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any, TextIO

from interfaces.cli.exit_status import BROKEN_PIPE
from runtime.errors import DshMemoryError

_BIDI = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_UNSAFE_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}\ud800-\udfff]")
_UNSAFE_JSON = re.compile(f"[\x7f-\x9f{_BIDI}\ud800-\udfff]")


def visible(text: str) -> str:
    """Make control characters, direction marks and lone surrogates visible and harmless.

    Newlines and tabs stay. C0 controls become their Unicode pictures (``␛``), the others their
    code point in angle brackets, so that recorded escape sequences never reach a terminal.
    """
    return _UNSAFE_TEXT.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"<U+{code:04X}>"


def to_json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON whose strings hold no character that a terminal could obey."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    return _UNSAFE_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def print_text(text: str) -> None:
    """Print rendered text on stdout."""
    _write(sys.stdout, visible(text) + "\n")


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    _write(sys.stdout, to_json_text(value) + "\n")


def print_json_line(value: Any) -> None:
    """Print one compact JSON line on stdout."""
    _write(sys.stdout, to_json_text(value, indent=None) + "\n")


def note(text: str) -> None:
    """Print a diagnostic on stderr."""
    _write(sys.stderr, visible(text) + "\n")
    sys.stderr.flush()


def print_error(error: DshMemoryError, *, as_json: bool) -> None:
    """Print a failure: as JSON on stdout, else as text on stderr."""
    if as_json:
        print_json({"error": error.to_json()})
        flush()
        return
    from pipeline.render import render_error

    note(render_error(error))


def unexpected(error: Exception) -> DshMemoryError:
    """Wrap an exception that nobody planned for; the traceback is shown only on demand."""
    if os.environ.get("DSH_MEMORY_TRACEBACK"):
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    return DshMemoryError(
        f"Unexpected {type(error).__name__}: {str(error)[:300]}",
        code="INTERNAL",
        hint="This is a defect; run again with DSH_MEMORY_TRACEBACK=1 and report the traceback.",
    )


def flush() -> None:
    """Flush stdout so that a closed pipe is noticed while it can still be handled."""
    sys.stdout.flush()


def abandon_stdout() -> int:
    """Leave quietly after the reader closed the pipe."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return BROKEN_PIPE


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

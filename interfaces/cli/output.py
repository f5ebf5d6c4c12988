"""Writing to the terminal: data on stdout, everything else on stderr, history always inert."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from dsh_memory.interfaces.cli.exit_status import BROKEN_PIPE
from dsh_memory.runtime.errors import DshMemoryError

ERROR_CHARS = 2000
"""Characters of a message or hint in an error's JSON at most; as text it is far shorter."""

_BIDI = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_UNSAFE_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}\ud800-\udfff]")
_UNSAFE_JSON = re.compile(f"[\x7f-\x9f{_BIDI}\ud800-\udfff]")


class OutputError(DshMemoryError):
    """Stdout takes nothing any more, for instance because its disk is full."""

    default_code = "INTERNAL_OUTPUT"


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
    _write(visible(text) + "\n")


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    _write(to_json_text(value) + "\n")


def print_json_line(value: Any) -> None:
    """Print one compact JSON line on stdout."""
    _write(to_json_text(value, indent=None) + "\n")


def note(text: str) -> None:
    """Print a diagnostic on stderr."""
    try:
        _encoded(sys.stderr, visible(text) + "\n")
        sys.stderr.flush()
    except OSError:
        _abandon(sys.stderr)  # nobody is left to be told, and the work itself goes on


def print_error(error: DshMemoryError, *, as_json: bool) -> None:
    """Print a failure: as JSON on stdout, else (or if stdout takes nothing) as text on stderr."""
    if as_json and not isinstance(error, OutputError):
        with suppress(OutputError):
            print_json({"error": {key: _clipped(value) for key, value in error.to_json().items()}})
            flush()
            return
    from dsh_memory.pipeline.memory.render import render_error

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


def open_streams() -> None:
    """Let a standard stream that was closed by the caller be ``/dev/null``.

    Otherwise the next file that is opened would be taken for it by everything that writes to it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))


def flush() -> None:
    """Flush stdout so that a closed pipe or a full disk is noticed while it can still be handled.

    Raises:
        BrokenPipeError: The reader has left.
        OutputError: Stdout takes nothing for another reason.
    """
    with _stdout_failures():
        sys.stdout.flush()


def flush_the_rest() -> None:
    """Flush what a command that failed or was interrupted had printed, if that can be done."""
    with suppress(OSError, OutputError):
        flush()


def abandon_stdout() -> int:
    """Leave quietly after the reader closed the pipe."""
    _abandon(sys.stdout)
    return BROKEN_PIPE


def _write(text: str) -> None:
    with _stdout_failures():
        _encoded(sys.stdout, text)


@contextmanager
def _stdout_failures() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        _abandon(sys.stdout)
        raise OutputError(
            f"Standard output cannot be written: {error.strerror}.",
            code="INTERNAL_OUTPUT",
            hint="The output is incomplete; send it elsewhere or make room, and run again.",
        ) from error


def _abandon(stream: TextIO) -> None:
    """Point a stream that fails to ``/dev/null``, so that its buffer does not fail again later."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)


def _encoded(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _clipped(value: Any) -> Any:
    """Return an error's field; echoed input of any size is cut."""
    if not isinstance(value, str) or len(value) <= ERROR_CHARS:
        return value
    return value[: ERROR_CHARS - 1] + "…"

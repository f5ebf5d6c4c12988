"""Names of directories and files in a session store (``<home>/sessions/<project>/<id>/<log>``)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

Encoding = Literal["plain", "zstd"]

CURRENT_GENERATION: Final = 4
SESSIONS_FOLDER: Final = "sessions"
LOCK_NAME: Final = "session.lock"
NO_CWD_PROJECT: Final = "_no-cwd"
LONGEST_NAME: Final = 255
"""Bytes of the longest file name."""

_MAX_KEY = 251
_SEPARATORS = re.compile(r"[/\\:]+")
_ESCAPED = re.compile(r"[^A-Za-z0-9._-]")
_LOG_NAME = re.compile(r"session(?:\.v([1-9][0-9]*))?\.jsonl(\.zstd)?")


def _escape_character(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"~{units[i] << 8 | units[i + 1]:04X}" for i in range(0, len(units), 2))


def escape_name(text: str) -> str:
    """Write every unit outside ``A-Z a-z 0-9 . _ -`` as ``~`` and four upper-case hex digits."""
    return _ESCAPED.sub(_escape_character, text)


@lru_cache(maxsize=1024)
def project_directory(cwd: str | None) -> str:
    """Return the directory name of a working directory; the mapping loses information."""
    if cwd is None:
        return NO_CWD_PROJECT
    key = escape_name(_SEPARATORS.sub("-", cwd)).lstrip("-") or "root"
    return f"--{key[:_MAX_KEY]}--"


def session_directory(session_id: str) -> str:
    """Return the directory name of a session id; distinct ids have distinct names."""
    if session_id in (".", ".."):
        return session_id.replace(".", "~002E")
    return escape_name(session_id)


def log_name(generation: int, encoding: Encoding) -> str:
    """Return the canonical file name of a log."""
    version = f".v{generation}" if generation else ""
    return f"session{version}.jsonl" + (".zstd" if encoding == "zstd" else "")


def parse_log_name(name: str) -> tuple[int, Encoding] | None:
    """Return generation and encoding of a canonical log name, None for any other file."""
    match = _LOG_NAME.fullmatch(name)
    if match is None:
        return None
    return int(match[1] or 0), "zstd" if match[2] else "plain"


def is_flat_log(name: str) -> bool:
    """Whether a file directly in a project directory is a log of the unsupported flat layout."""
    return name.endswith((".jsonl", ".jsonl.zstd"))

"""Opening a log, and reading its header line and nothing else of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from dsh_memory.sessionquery.disk.discovery import FoundLog, LogRevision
from dsh_memory.sessionquery.disk.frames import FrameError, FrameReader, PlainReader
from dsh_memory.sessionquery.disk.header import HeaderProblem, parse_header
from dsh_memory.sessionquery.errors import PERSISTENCE_FAILED, SessionQueryError
from dsh_memory.sessionquery.model.sessions import SessionHeader


def read_header(root: Path, found: FoundLog) -> SessionHeader | HeaderProblem:
    """Read the header line of a log and nothing else of it.

    Args:
        root: The sessions directory.
        found: The log.

    Raises:
        SessionQueryError: ``PERSISTENCE_FAILED`` if the file cannot be read.
    """
    path = found.path(root)
    try:
        with path.open("rb") as handle:
            line = open_reader(handle, found.revision.size, found).header_line()
    except FrameError as error:
        return HeaderProblem("corrupt", str(error))
    except OSError as error:
        raise unreadable(path, error) from error
    return parse_header(line, found.revision.generation)


def unreadable(path: Path, error: OSError) -> SessionQueryError:
    """Return the error for a log that cannot be opened or read."""
    return SessionQueryError(
        f"The session log {path} cannot be read: {error.strerror or error}.",
        code=PERSISTENCE_FAILED,
        retryable=isinstance(error, FileNotFoundError),
    )


def open_reader(handle: BinaryIO, size: int, found: FoundLog) -> FrameReader | PlainReader:
    """Return the reader for the log's encoding, which looks at `size` bytes of the file."""
    return FrameReader(handle, size) if found.encoding == "zstd" else PlainReader(handle, size)


def revision_of(handle: BinaryIO, generation: int) -> LogRevision:
    """Return the revision of an open log."""
    status = os.fstat(handle.fileno())
    return LogRevision(
        generation, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
    )

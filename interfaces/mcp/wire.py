"""The process's own stdin and stdout, kept for the protocol and nothing else.

`claim_wire` runs before anything heavy is imported: from then on whatever the program, a library
or a child prints to stdout lands on stderr, and whoever reads stdin sees its end.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wire:
    """Two private descriptors, not inherited by children."""

    read_fd: int
    write_fd: int


def claim_wire() -> Wire:
    """Move stdin and stdout to private descriptors; 0 becomes empty, 1 becomes stderr.

    Raises:
        OSError: A standard descriptor is closed.
    """
    wire = Wire(_private(0), _private(1))
    empty = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(empty, 0)
    os.close(empty)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a stderr: stray output goes nowhere
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    return wire


def _private(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)

"""Entry points of the console scripts: signals first, then the slow imports, then the command.

Only this module is imported before a signal can be handled, so it imports next to nothing itself.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

_INTERRUPTED = 130


def main() -> None:
    """``dsh-memory``."""
    _start("dsh-memory")


def memory_search() -> None:
    """``memory-search``."""
    _start("memory-search", "search")


def memory_review() -> None:
    """``memory-review``."""
    _start("memory-review", "review")


def memory_read() -> None:
    """``memory-read``."""
    _start("memory-read", "read")


def memory_status() -> None:
    """``memory-status``."""
    _start("memory-status", "status")


def memory_help() -> None:
    """``memory-help``."""
    _start("memory-help", "help")


def _start(program: str, command: str | None = None) -> None:
    """Run a command of the process's own arguments, and leave with its exit status."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:
        # There is nothing to clean up yet, and an interrupted import would show a traceback.
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(_INTERRUPTED))
    from dsh_memory.interfaces.cli import commands, output

    output.open_streams()
    found = commands.cli if command is None else commands.load(command)
    try:
        signal.signal(signal.SIGINT, usual)
        status = commands.run(found, sys.argv[1:], program=program)
    except KeyboardInterrupt:
        status = _INTERRUPTED
    output.flush_the_rest()
    if status > 128:
        # Work that was given up, such as importing an SDK, may go on in a thread for a second; a
        # usual exit would wait for it. What has to be cleaned up has been.
        os._exit(status)
    gc.freeze()  # else a last collection would take as long as the search itself
    sys.exit(status)

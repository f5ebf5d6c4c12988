"""``dsh-memory query``: many engine requests in one process, one answer line each."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from dsh_memory.interfaces.cli import output
from dsh_memory.interfaces.cli.options import common_options, current_options
from dsh_memory.interfaces.cli.running import run_async
from dsh_memory.pipeline.shared.errors import RequestError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("requests", metavar="REQUESTS.jsonl")
@common_options
def query(requests: str) -> None:
    """Answer engine requests, one JSON object a line ("-" reads stdin).

    Each line is {"id", "op", "args"}; each answer is {"id", "ok"} or
    {"id", "error": {"code", "message"}}, in order. {"$cursorOf": ID} as a cursor stands for the
    nextCursor of answer ID, "$aborted": true for an already cancelled call.
    """
    options = current_options()
    lines = _read_lines(requests)
    next(lines)  # opens the file, or reads stdin

    async def work() -> None:
        from dsh_memory.pipeline.assembly import open_memory
        from dsh_memory.pipeline.jsonl import answer_lines

        async with open_memory(options.load()) as memory:
            async for answer in answer_lines(memory, lines):
                output.print_json_line(answer)

    run_async(work)


def _read_lines(requests: str) -> Iterator[str]:
    """Yield the lines of a file, or of stdin ("-"), as they are needed; those of a pipe at once."""
    try:
        with contextlib.ExitStack() as stack:
            if requests == "-":
                source = sys.stdin.buffer
            else:
                source = stack.enter_context(Path(requests).open("rb"))
            lines: Iterable[bytes] = source
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                # Read before the event loop runs, so that Ctrl-C still ends a wait for input.
                lines = source.read().splitlines()
            yield ""
            for line in lines:
                yield line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(f"{requests} is not UTF-8: {error}", hint="Save it as UTF-8.") from error
    except OSError as error:
        raise RequestError(
            f"{requests} cannot be read: {error.strerror}", hint="Check the path."
        ) from error

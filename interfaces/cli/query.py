"""``dsh-memory query``: many engine requests in one process, one answer line each."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from interfaces.cli import output
from interfaces.cli.options import common_options, current_options
from interfaces.cli.running import run_async
from pipeline.errors import RequestError


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

    async def work() -> None:
        from pipeline.batch import answer_lines

        from pipeline.assembly import open_memory

        async with open_memory(options.load()) as memory:
            async for answer in answer_lines(memory, _read_lines(requests)):
                output.print_json_line(answer)

    run_async(work)


def _read_lines(requests: str) -> list[str]:
    try:
        if requests == "-":
            raw = sys.stdin.buffer.read()
        else:
            raw = Path(requests).read_bytes()
        return raw.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RequestError(f"{requests} is not UTF-8: {error}", hint="Save it as UTF-8.") from error
    except OSError as error:
        raise RequestError(
            f"{requests} cannot be read: {error.strerror}", hint="Check the path."
        ) from error

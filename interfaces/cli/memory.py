"""``memory-search``, ``memory-review``, ``memory-read``, ``memory-status`` and ``memory-help``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from dsh_memory.interfaces.cli import output
from dsh_memory.interfaces.cli.arguments import (
    event_number,
    is_json,
    json_request,
    request_from_words,
    working_directory,
)
from dsh_memory.interfaces.cli.options import CommonOptions, common_options, current_options
from dsh_memory.interfaces.cli.running import run_async
from dsh_memory.pipeline.shared.errors import RequestError

if TYPE_CHECKING:
    from dsh_memory.pipeline.memory.results import ReadResult, SearchResult

F = TypeVar("F", bound=Callable[..., Any])
_SETTINGS = {"help_option_names": ["-h", "--help"]}


def _page_options(command: F) -> F:
    for option in reversed(
        [
            click.argument("words", nargs=-1, type=click.UNPROCESSED),
            click.option("--question", help="The complete question; required with Jev."),
            click.option("--cwd", metavar="DIR", help="Only sessions recorded in exactly DIR."),
            click.option("--here", is_flag=True, help="The same for the current directory."),
            click.option(
                "--session", "session_id", metavar="ID", help="Only events of this session."
            ),
            click.option("--limit", type=int, help="Page size, 1 to 50; default 20."),
            click.option("--cursor", help="The next_cursor of the previous page."),
            click.option("--jev/--no-jev", default=None, help="Filter by the local model or not."),
            click.option("--obsidian/--no-obsidian", default=None, help="Write a note or not."),
        ]
    ):
        command = option(command)
    return command


@click.command(context_settings=_SETTINGS)
@_page_options
@common_options
def search(**arguments: Any) -> None:
    """Search earlier sessions for a literal word or phrase.

    WORDS are joined by one blank and matched as one phrase; or give one JSON object.
    """
    _page(arguments, review=False)


@click.command(context_settings=_SETTINGS)
@_page_options
@common_options
def review(**arguments: Any) -> None:
    """Show what the local model filtered out of the same page."""
    _page(arguments, review=True)


@click.command(context_settings=_SETTINGS)
@click.argument("target", nargs=-1, type=click.UNPROCESSED, metavar="SESSION SEQ | JSON")
@click.option("--before", type=int, help="Events before the target, 0 to 20; default 4.")
@click.option("--after", type=int, help="Events after the target, 0 to 20; default 4.")
@click.option("--max-chars", type=int, help="Text budget, 100 to 24000; default 12000.")
@common_options
def read(target: tuple[str, ...], **fields: int | None) -> None:
    """Read the original text around one event of a session."""
    options = current_options()
    request = _read_request(target, fields)

    async def work() -> ReadResult:
        from dsh_memory.pipeline.assembly import open_memory

        async with open_memory(options.load()) as memory:
            return await memory.read_value(request)

    result = run_async(work)
    if options.json:
        output.print_json(result.to_json())
        return
    from dsh_memory.pipeline.memory.render import render_read

    output.print_text(render_read(result))


def _read_request(target: tuple[str, ...], fields: dict[str, int | None]) -> object:
    given = {name: value for name, value in fields.items() if value is not None}
    if is_json(target):
        return json_request(target[0], given)
    if len(target) != 2:
        raise RequestError(
            f"Reading takes a session id and an event number, not {len(target)} arguments.",
            hint="memory-read SESSION SEQ, or one JSON object.",
        )
    session_id, seq = target
    number = event_number(seq, hint="Take the seq of a search hit.")
    return {"session_id": session_id, "seq": number, **given}


@click.command(context_settings=_SETTINGS)
@click.option("--check", is_flag=True, help="Also ask the configured model server (2 s).")
@common_options
def status(check: bool) -> None:
    """Show the effective settings and the state of index and model, without any effect."""
    options = current_options()

    async def work() -> dict[str, Any]:
        from dsh_memory.pipeline.status.collect import collect_status

        return await collect_status(options.load(), check=check)

    value = run_async(work)
    if options.json:
        output.print_json(value)
        return
    from dsh_memory.pipeline.memory.render import render_status

    output.print_text(render_status(value))


@click.command("help", context_settings=_SETTINGS)
@common_options
def help_command() -> None:
    """Show version, usage and limits."""
    from importlib.metadata import version

    from dsh_memory.pipeline.memory.render import render_help

    text = render_help(version("dsh-memory"))
    if current_options().json:
        output.print_json({"version": version("dsh-memory"), "text": text})
        return
    output.print_text(text)


def _page(arguments: dict[str, Any], *, review: bool) -> None:
    options = current_options()
    fields = {name: arguments[name] for name in ("question", "session_id", "limit", "cursor")}
    fields["cwd"] = working_directory(arguments["cwd"], here=arguments["here"])
    request = request_from_words(arguments["words"], fields)
    for key in ("jev", "obsidian"):
        if arguments[key] is not None:
            options.overrides.append(f"{key}.enabled={str(arguments[key]).lower()}")

    result = run_async(lambda: _run_page(options, request, review=review))
    if not options.quiet:
        for text in result.diagnostics or ():
            output.note(text)
    if options.json:
        output.print_json(result.to_json())
        return
    from dsh_memory.pipeline.memory.render import render_search

    output.print_text(render_search(result))


async def _run_page(options: CommonOptions, request: object, *, review: bool) -> SearchResult:
    from dsh_memory.pipeline.assembly import open_memory

    if options.quiet:
        async with open_memory(options.load()) as memory:
            return await memory.page(request, review=review)
    from dsh_memory.interfaces.cli.progress import TerminalProgress

    with TerminalProgress() as progress:
        async with open_memory(options.load(), progress=progress) as memory:
            return await memory.page(request, review=review)

"""``dsh-memory recall``: the agents' tool of the same name for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click
from dsh_memory.interfaces.cli import output
from dsh_memory.interfaces.cli.arguments import request_from_words, working_directory
from dsh_memory.interfaces.cli.options import common_options, current_directory, current_options
from dsh_memory.interfaces.cli.running import run_async

if TYPE_CHECKING:
    from dsh_memory.pipeline.recall.requests import RecallResult
    from dsh_memory.pipeline.shared.engine_port import HistoryEngine


@click.command("recall", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.option("--all-projects", is_flag=True, default=None, help="Every project.")
@click.option("--session", "session_id", metavar="ID", help="Only events of session ID.")
@click.option("--since-days", type=int, metavar="DAYS", help="Only events of the last DAYS days.")
@click.option("--limit", type=int, help="Page size, 1 to 10; default 5.")
@click.option("--cursor", help="The next_cursor of the previous page.")
@click.option("--cwd", metavar="DIR", help="The project; default the current directory.")
@common_options
def recall(cwd: str | None, words: tuple[str, ...], **fields: Any) -> None:
    """Search the sessions of this project, also for parts of Chinese or Japanese text.

    WORDS are joined by one blank and matched as one phrase; or give one JSON object.
    """
    options = current_options()
    request = request_from_words(words, fields)
    directory = working_directory(cwd, here=False) or str(current_directory())

    async def work() -> RecallResult:
        from dsh_memory.pipeline.assembly import open_memory
        from dsh_memory.pipeline.recall.service import Recall
        from dsh_memory.pipeline.shared.dsh_home import dsh_home
        from dsh_memory.pipeline.shared.workspace_access import Caller

        async with open_memory(options.load()) as memory:
            # An assembled workflow holds the whole engine, of which it names only a part itself.
            engine = cast("HistoryEngine", memory.engine)
            settings = memory.settings
            caller = Caller(cwd=directory)
            answer = Recall(engine, settings, caller, home=str(dsh_home(settings)))
            return await answer.recall(request)

    result = run_async(work)
    if not options.quiet:
        for text in result.diagnostics or ():
            output.note(text)
    if options.json:
        output.print_json(result.to_json())
        return
    from dsh_memory.pipeline.recall.render import render_recall

    output.print_text(render_recall(result))

"""``dsh-memory config page``: the configuration page in the user's browser."""

from __future__ import annotations

import click
from dsh_memory.interfaces.cli import output
from dsh_memory.interfaces.cli.options import common_options, current_options
from dsh_memory.interfaces.cli.running import run_async


@click.command("page")
@click.option("--no-open", is_flag=True, help="Print the address, open no browser.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Port on 127.0.0.1; default a free one.",
)
@common_options
def page(no_open: bool, port: int) -> None:
    """Edit the configuration on a local web page, until Ctrl-C.

    The page listens on 127.0.0.1 only. The address is good for one browser tab. Only its Save
    button writes.
    """
    options = current_options()

    def ready(url: str) -> None:
        if options.json:
            output.print_json_line({"url": url})
            output.flush()
        if not options.json or not options.quiet:
            output.note(f"Configuration page: {url}")
            output.note("Good for one tab. Ctrl-C stops the server.")
        if not no_open:
            _open_browser(url)

    async def work() -> None:
        from dsh_memory.interfaces.page.form import Source
        from dsh_memory.interfaces.page.server import serve

        source = Source(config_path=options.config_path, overrides=tuple(options.all_overrides()))
        await serve(source, port=port, ready=ready)

    run_async(work)


def _open_browser(url: str) -> None:
    import os
    import threading
    import webbrowser

    # Some browsers chat on the stdout that they inherit; ours is data, and has all been said.
    os.dup2(2, 1)

    def start() -> None:
        if not webbrowser.open(url):
            output.note("No browser could be opened; open the address yourself.")

    # A terminal browser would block until it is closed, and the server must answer it meanwhile.
    threading.Thread(target=start, daemon=True).start()

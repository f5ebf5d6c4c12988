"""``dsh-memory standin``: the demonstration's System One server."""

from __future__ import annotations

import click
from dsh_memory.interfaces.cli import output
from dsh_memory.interfaces.cli.options import common_options, current_options


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--port", type=click.IntRange(0, 65535), default=11435, show_default=True)
@common_options
def standin(port: int) -> None:
    """Serve a stand-in System One model on loopback, for demonstration and tests only.

    Its model is named standin-e5 and scores by embedding similarity, which is far weaker than a
    real decision model. Port 0 takes a free port; the address is printed when it is ready.
    """
    from dsh_memory.classifier.standin.server import serve

    as_json = current_options().json

    def ready(base_url: str) -> None:
        if as_json:
            output.print_json({"base_url": base_url, "model": "standin-e5"})
        else:
            output.print_text(f"stand-in System One server ready: {base_url} (model standin-e5)")
        output.flush()

    serve(port=port, ready=ready)

"""``dsh-memory sessions``, ``events``, ``surface`` and ``trace``: looking at the store itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from dsh_memory.interfaces.cli import output
from dsh_memory.interfaces.cli.arguments import event_number, working_directory
from dsh_memory.interfaces.cli.options import common_options, current_options
from dsh_memory.interfaces.cli.running import run_async
from dsh_memory.pipeline import store_views as history

if TYPE_CHECKING:
    from dsh_memory.sessionquery.engine import SessionQueryEngine

T = TypeVar("T")
_SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.command(context_settings=_SETTINGS)
@click.option("--cwd", metavar="DIR", help="Only sessions recorded in exactly DIR.")
@click.option("--here", is_flag=True, help="The same for the current directory.")
@click.option("--since", metavar="DATE", help="Only sessions created at or after DATE (UTC).")
@click.option("--parent", metavar="ID", help="Only children of session ID.")
@common_options
def sessions(cwd: str | None, here: bool, since: str | None, parent: str | None) -> None:
    """List sessions with title, date, directory and size; unreadable ones are marked."""
    cwd = working_directory(cwd, here=here)
    filters = history.session_filters(cwd=cwd, since=since, parent=parent)
    overview = _with_engine(lambda engine: history.session_overview(engine, filters))
    if current_options().json:
        output.print_json(overview)
    else:
        output.print_text(history.render_overview(overview))


@click.command(context_settings=_SETTINGS)
@click.argument("session")
@common_options
def events(session: str) -> None:
    """List every event of SESSION with its surface."""
    _show(lambda engine: engine.list_events(session), history.render_events)


@click.command(context_settings=_SETTINGS)
@click.argument("session")
@common_options
def surface(session: str) -> None:
    """Show what the model of SESSION sees now, in its order."""
    _show(lambda engine: engine.read_surface(session), history.render_surface)


@click.command(context_settings=_SETTINGS)
@click.argument("session")
@click.argument("seq", required=False)
@common_options
def trace(session: str, seq: str | None) -> None:
    """Draw the lineage of SESSION, or trace its event SEQ."""
    if seq is None:
        _show(lambda engine: engine.trace_session(session), history.render_lineage)
        return
    number = event_number(seq, hint="Take it from a search hit or from dsh-memory events.")
    _show(lambda engine: engine.trace_event(session, number), history.render_event_trace)


def _show(ask: Callable[[SessionQueryEngine], Awaitable[T]], render: Callable[[T], str]) -> None:
    value = _with_engine(ask)
    if current_options().json:
        from dsh_memory.sessionquery.model.wire import to_wire

        output.print_json(to_wire(value))
    else:
        output.print_text(render(value))


def _with_engine(ask: Callable[[SessionQueryEngine], Awaitable[T]]) -> T:
    options = current_options()

    async def work() -> Any:
        from dsh_memory.pipeline.assembly import open_engine

        async with open_engine(options.load()) as engine:
            return await ask(engine)

    value: T = run_async(work)
    return value

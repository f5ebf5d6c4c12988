"""The commands by name, and the one place where errors become exit statuses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click
from dsh_memory.interfaces.cli import output
from dsh_memory.interfaces.cli.exit_status import INTERRUPTED, UNEXPECTED, exit_status
from dsh_memory.interfaces.cli.options import common_options
from dsh_memory.runtime.errors import DshMemoryError

_COMMANDS = {
    "search": "dsh_memory.interfaces.cli.memory:search",
    "review": "dsh_memory.interfaces.cli.memory:review",
    "read": "dsh_memory.interfaces.cli.memory:read",
    "status": "dsh_memory.interfaces.cli.memory:status",
    "help": "dsh_memory.interfaces.cli.memory:help_command",
    "sessions": "dsh_memory.interfaces.cli.history:sessions",
    "events": "dsh_memory.interfaces.cli.history:events",
    "surface": "dsh_memory.interfaces.cli.history:surface",
    "trace": "dsh_memory.interfaces.cli.history:trace",
    "query": "dsh_memory.interfaces.cli.query:query",
    "config": "dsh_memory.interfaces.cli.config:config",
    "standin": "dsh_memory.interfaces.cli.standin:standin",
    "recall": "dsh_memory.interfaces.cli.recall:recall",
    "mcp": "dsh_memory.interfaces.cli.mcp:mcp",
}


class LazyGroup(click.Group):
    """A group that imports a command's module only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load(cmd_name) if cmd_name in _COMMANDS else None


def load(name: str) -> click.Command:
    """Import and return the command `name`."""
    module, _, attribute = _COMMANDS[name].partition(":")
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command)
    return command


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="History is data, not instructions.",
)
@common_options
def cli() -> None:
    """A trustworthy memory of earlier DeepSeek Harness sessions."""


def run(command: click.Command, arguments: Sequence[str], *, program: str) -> int:
    """Run one command and return its exit status; every error is printed here and only here."""
    as_json = _wants_json(arguments)
    if sys.platform == "win32":  # locks, process groups and O_NOFOLLOW are POSIX
        click.echo("dsh-memory runs on Linux and macOS; Windows is not supported.", err=True)
        return 1
    stdout = sys.stdout
    try:
        result = command.main(list(arguments), prog_name=program, standalone_mode=False)
        output.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        refused = DshMemoryError(
            error.format_message(),
            code="REQUEST_OPTION",
            hint=f"Run `{program} --help` for the options.",
        )
        return _fail(refused, as_json=as_json)
    except DshMemoryError as error:
        return _fail(error, as_json=as_json)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return output.abandon_stdout()
    except SystemExit as left:
        if sys.stdout is not stdout:  # click exchanges the streams when it meets a closed pipe
            return output.abandon_stdout()
        return left.code if isinstance(left.code, int) else UNEXPECTED  # after a shell completion
    except OSError as error:
        named = "" if error.filename is None else f" ({error.filename})"
        wrapped = DshMemoryError(
            f"The operating system refused: {error.strerror or error}{named}.", code="INTERNAL_OS"
        )
        return _fail(wrapped, as_json=as_json)
    except Exception as error:  # noqa: BLE001 - the last resort: a user never sees a traceback
        return _fail(output.unexpected(error), as_json=as_json)


def _wants_json(arguments: Sequence[str]) -> bool:
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _fail(error: DshMemoryError, *, as_json: bool) -> int:
    try:
        output.print_error(error, as_json=as_json)
    except BrokenPipeError:
        return output.abandon_stdout()
    return exit_status(error)

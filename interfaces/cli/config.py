"""``dsh-memory config``: where the settings are, what they are, and changing them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click
from dsh_memory.interfaces.cli import output
from dsh_memory.interfaces.cli.options import CommonOptions, common_options, current_options

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_LAZY = {"page": "dsh_memory.interfaces.cli.page:page"}


class ConfigGroup(click.Group):
    """A group whose page command is imported only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_LAZY]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _LAZY:
            return super().get_command(ctx, cmd_name)
        module, _, name = _LAZY[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=ConfigGroup, context_settings=_SETTINGS)
@common_options
def config() -> None:
    """Show and change the configuration."""


@config.command(context_settings=_SETTINGS)
@common_options
def path() -> None:
    """Print the path of the user's configuration file."""
    target = user_file(current_options())
    if current_options().json:
        output.print_json({"path": str(target), "exists": target.exists()})
    else:
        output.print_text(str(target))


@config.command(context_settings=_SETTINGS)
@common_options
def show() -> None:
    """Print every setting with the layer that it comes from."""
    from dsh_memory.runtime.config.view import show as view

    options = current_options()
    value = view(options.load())
    if options.json:
        output.print_json(value)
        return
    lines = [f"# {value['user_file']} (revision {value['revision'][:12]})"]
    lines += [
        f"{row['key']} = {_text(row['value'])}  # {row['layer']}" for row in value["settings"]
    ]
    output.print_text("\n".join(lines))


@config.command(context_settings=_SETTINGS)
@click.argument("key")
@common_options
def get(key: str) -> None:
    """Print the effective value of KEY."""
    from dsh_memory.runtime.config.view import row

    options = current_options()
    found = row(options.load(), key)
    if options.json:
        output.print_json(found.to_json())
    else:
        output.print_text(_text(found.value))


@config.command("set", context_settings={**_SETTINGS, "ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
@click.option("--revision", help="Write only if the file still has this revision.")
@common_options
def set_command(key: str, value: str, revision: str | None) -> None:
    """Set KEY to VALUE in the user's configuration file."""
    from dsh_memory.runtime.config.edit import set_text

    options = current_options()
    result = set_text(user_file(options), key, value, expected_revision=revision)
    _report(options, key, result)


@config.command(context_settings=_SETTINGS)
@click.argument("key")
@click.option("--revision", help="Write only if the file still has this revision.")
@common_options
def unset(key: str, revision: str | None) -> None:
    """Remove KEY from the user's configuration file."""
    from dsh_memory.runtime.config.edit import unset_value

    options = current_options()
    result = unset_value(user_file(options), key, expected_revision=revision)
    _report(options, key, result)


def user_file(options: CommonOptions) -> Path:
    """Return the file that ``config set`` writes: ``--config``, else the user's."""
    from dsh_memory.runtime.config.paths import user_config_file

    return options.config_path or user_config_file()


def _report(options: CommonOptions, key: str, result: Any) -> None:
    if options.json:
        output.print_json(
            {
                "path": str(result.path),
                "key": key,
                "changed": result.changed,
                "revision": result.revision,
            }
        )
    elif not options.quiet:
        done = "changed" if result.changed else "already so"
        output.note(f"{key}: {done} in {result.path}")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)

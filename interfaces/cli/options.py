"""Options that every command has, and the settings that they lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from dsh_memory.interfaces.cli import output
from dsh_memory.pipeline.shared.errors import RequestError, clipped

if TYPE_CHECKING:
    from dsh_memory.runtime.config.layers import LoadedConfig

F = TypeVar("F", bound=Callable[..., Any])
_META = "dsh-memory.options"


@dataclass(slots=True)
class CommonOptions:
    """Values of the common options, from the group and from the command together."""

    json: bool = False
    quiet: bool = False
    home: str | None = None
    config: str | None = None
    overrides: list[str] = field(default_factory=list)

    @property
    def config_path(self) -> Path | None:
        return None if self.config is None else absolute_path("--config", self.config)

    def load(self) -> LoadedConfig:
        """Load the layered configuration, ``--home`` and ``--set`` as its last layer."""
        from dsh_memory.runtime.config.layers import load

        return load(config_path=self.config_path, overrides=self.all_overrides())

    def all_overrides(self) -> list[str]:
        """Return the ``KEY=VALUE`` texts of ``--set``, and ``--home`` as one of them."""
        overrides = list(self.overrides)
        if self.home is not None:
            overrides.append(f"store.home={absolute_path('--home', self.home)}")
        return overrides


def absolute_path(option: str, text: str) -> Path:
    """Return the path that a person gave, with ``~`` expanded, below the current directory.

    Raises:
        RequestError: ``REQUEST_OPTION`` when it is empty, which is rather an unset variable of a
            script than a wish for the default, or names an unknown user, or is relative and the
            current directory is gone.
    """
    if not text:
        raise RequestError(
            f"{option} is empty.", code="REQUEST_OPTION", hint="Give a path, or leave it out."
        )
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise RequestError(
            f"{option}: the home directory in {clipped(text)!r} is not known.",
            code="REQUEST_OPTION",
            hint="Give the whole path.",
        ) from error
    return path if path.is_absolute() else current_directory() / path


def current_directory() -> Path:
    """Return the current directory.

    Raises:
        RequestError: It does not exist any more, or must not be looked at.
    """
    try:
        return Path.cwd()
    except OSError as error:
        raise RequestError(
            f"The current directory cannot be determined: {error.strerror}.",
            hint="Change to a directory that exists, or give an absolute path.",
        ) from error


def current_options() -> CommonOptions:
    """Return the common options of the running command."""
    return _stored(click.get_current_context())


def _stored(ctx: click.Context) -> CommonOptions:
    options = ctx.meta.setdefault(_META, CommonOptions())
    assert isinstance(options, CommonOptions)
    return options


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    options = _stored(ctx)
    name = str(param.name)
    if name == "overrides":
        options.overrides.extend(value)
    elif value is not None and value is not False:
        setattr(options, name, value)


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        output.print_text(f"dsh-memory {version('dsh-memory')}")
        ctx.exit()


def common_options(command: F) -> F:
    """Add ``--json --home --config --set --quiet --version`` to a command or group."""
    shared: list[Callable[[F], F]] = [
        click.option(
            "--json",
            "json",
            is_flag=True,
            expose_value=False,
            callback=_remember,
            help="Print one JSON document on stdout.",
        ),
        click.option(
            "--home",
            metavar="PATH",
            expose_value=False,
            callback=_remember,
            help="The DSH home; default $DSH_HOME, else ~/.dsh.",
        ),
        click.option(
            "--config",
            metavar="PATH",
            expose_value=False,
            callback=_remember,
            help="Use this configuration file instead of the user's.",
        ),
        click.option(
            "--set",
            "overrides",
            metavar="KEY=VALUE",
            multiple=True,
            expose_value=False,
            callback=_remember,
            help="Override one configuration value; repeatable.",
        ),
        click.option(
            "--quiet",
            is_flag=True,
            expose_value=False,
            callback=_remember,
            help="No progress and no notices on stderr.",
        ),
        click.option(
            "--version",
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_print_version,
            help="Print the version and leave.",
        ),
    ]
    for option in reversed(shared):
        command = option(command)
    return command

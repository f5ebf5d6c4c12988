"""Which DSH home a call is about."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dsh_memory.runtime.config.paths import user_home
from dsh_memory.runtime.config.settings import Settings
from dsh_memory.runtime.errors import ConfigError


def dsh_home(settings: Settings, environ: Mapping[str, str] | None = None) -> Path:
    """Return the DSH home: ``store.home``, else ``$DSH_HOME``, else ``~/.dsh``; absolute.

    Raises:
        ConfigError: ``DSH_HOME`` names a place that cannot be found out, or is not set and the
            user's home directory is not known.
    """
    if settings.store.home is not None:
        return Path(settings.store.home)
    named = (os.environ if environ is None else environ).get("DSH_HOME")
    if not named:
        return user_home() / ".dsh"
    try:
        return Path(named).expanduser().absolute()
    except (OSError, RuntimeError) as error:
        raise ConfigError(
            f"The environment variable DSH_HOME names a directory that cannot be found: {named!r}.",
            hint="Set DSH_HOME to an absolute path, or give --home.",
        ) from error

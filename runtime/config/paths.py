"""Where configuration files lie.

On Linux the two paths are read straight from the XDG variables, because importing `platformdirs`
would cost every command more than reading its configuration; a test holds the two equal. Relative
paths in these variables, and in ``HOME``, do not count. Elsewhere `platformdirs` answers.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from dsh_memory.runtime.errors import ConfigError

APPLICATION = "dsh-memory"
FILE_NAME = "config.toml"


def user_home() -> Path:
    """Return the user's home directory: ``HOME``, else what the system has on record.

    Raises:
        ConfigError: Neither names an absolute path.
    """
    home = os.environ.get("HOME", "")
    if not home.startswith("/"):
        import pwd

        with suppress(KeyError):
            home = pwd.getpwuid(os.getuid()).pw_dir
    if not home.startswith("/"):
        raise ConfigError(
            "Your home directory is not known: HOME is not set to an absolute path, and the "
            "system has no record of your user.",
            hint="Set HOME.",
        )
    return Path(home)


def user_config_file() -> Path:
    """Return the user's configuration file; it need not exist.

    Raises:
        ConfigError: The user's home directory would be needed and is not known.
    """
    if sys.platform == "linux":
        base = os.environ.get("XDG_CONFIG_HOME", "")
        directory = Path(base) if base.startswith("/") else user_home() / ".config"
        return directory / APPLICATION / FILE_NAME
    import platformdirs

    return platformdirs.user_config_path(APPLICATION, appauthor=False) / FILE_NAME


def site_config_file() -> Path:
    """Return the configuration file that holds for every user of the machine."""
    if sys.platform == "linux":
        bases = os.environ.get("XDG_CONFIG_DIRS", "").split(os.pathsep)
        first = next((base for base in bases if base.startswith("/")), "/etc/xdg")
        return Path(first) / APPLICATION / FILE_NAME
    import platformdirs

    return platformdirs.site_config_path(APPLICATION, appauthor=False) / FILE_NAME

"""Where configuration files lie.

On Linux the two paths are read straight from the XDG variables, because importing `platformdirs`
would cost every command more than reading its configuration; a test holds the two equal.
Elsewhere `platformdirs` answers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

APPLICATION = "dsh-memory"
FILE_NAME = "config.toml"


def user_config_file() -> Path:
    """Return the user's configuration file; it need not exist."""
    if sys.platform == "linux":
        base = os.environ.get("XDG_CONFIG_HOME", "").strip()
        directory = Path(base) if base else Path("~/.config").expanduser()
        return directory / APPLICATION / FILE_NAME
    import platformdirs

    return platformdirs.user_config_path(APPLICATION, appauthor=False) / FILE_NAME


def site_config_file() -> Path:
    """Return the configuration file that holds for every user of the machine."""
    if sys.platform == "linux":
        bases = os.environ.get("XDG_CONFIG_DIRS", "").strip() or "/etc/xdg"
        return Path(bases.split(os.pathsep)[0]).expanduser() / APPLICATION / FILE_NAME
    import platformdirs

    return platformdirs.site_config_path(APPLICATION, appauthor=False) / FILE_NAME

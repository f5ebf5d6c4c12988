"""Status: effective settings and the state of store, index, model and vault, without any effect.

Nothing is started, pulled, created or written, and no log is opened. The network is used only when
asked (`check`), and then only to talk to the configured loopback endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
from dsh_memory.pipeline.shared.dsh_home import dsh_home
from dsh_memory.runtime.errors import DshMemoryError

if TYPE_CHECKING:
    from dsh_memory.runtime.config.layers import LoadedConfig
    from dsh_memory.runtime.config.settings import Settings

VERIFIED_RUNTIME: Final = "0.2.1-rc.2"
"""The newest published DSH runtime: recorded answers and tests compare with it."""

DOCUMENTED_RUNTIME: Final = "0.2.1-rc.3"
"""The runtime that documents 000 and 003 pin."""


async def collect_status(
    loaded: LoadedConfig,
    *,
    check: bool = False,
    service_state: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the status as JSON.

    Problems of a part (an unreadable store, a foreign index file, a missing vault) are facts of it
    under ``problem``, they never fail the status.

    Args:
        check: Also ask the model endpoint for its version and model, two seconds each.
        service_state: State of the model service of a long-lived process
            (`runtime.ollama.service.ModelService.state`).
    """
    from dsh_memory.runtime.config.view import rows
    from dsh_memory.runtime.status import model_status

    settings = loaded.settings
    status: dict[str, Any] = {
        "version": version("dsh-memory"),
        "verified_with_dsh": VERIFIED_RUNTIME,
        "documents_pin_dsh": DOCUMENTED_RUNTIME,
        "configuration": {
            "user_file": str(loaded.user_path),
            "revision": loaded.revision,
            "site_file": str(loaded.site_path),
            "site_revision": loaded.site_revision,
        },
        "settings": {row.key: {"value": row.value, "from": row.layer} for row in rows(loaded)},
    }
    status["store"] = await anyio.to_thread.run_sync(_store_facts, settings)
    status["index"] = await anyio.to_thread.run_sync(_index_facts, settings)
    status["jev"] = await model_status(settings.jev, check=check, service_state=service_state)
    status["obsidian"] = await anyio.to_thread.run_sync(_vault_facts, settings)
    return status


def _store_facts(settings: Settings) -> dict[str, Any]:
    from dsh_memory.sessionquery.abort import AbortSignal
    from dsh_memory.sessionquery.disk.discovery import discover
    from dsh_memory.sessionquery.disk.names import SESSIONS_FOLDER
    from dsh_memory.sessionquery.disk.writer_locks import locked_logs, locks_visible

    home = dsh_home(settings)
    root = home / SESSIONS_FOLDER
    facts: dict[str, Any] = {"home": str(home), "exists": root.is_dir()}
    try:
        found = discover(root, None, signal=AbortSignal())
    except DshMemoryError as error:
        return facts | {"problem": error.message}
    facts["session_logs"] = len(found.logs)
    if locks_visible():
        facts["being_written"] = len(locked_logs(root, found.logs))
    else:
        facts["being_written"] = "unknown: this system does not tell who holds a lock"
    if found.faults:
        facts["problem"] = [f"{fault.path}: {fault.reason}" for fault in found.faults]
    return facts


def _index_facts(settings: Settings) -> dict[str, Any]:
    from dsh_memory.sessionquery.index.file.location import inspect_file, locate_index

    location = locate_index(str(dsh_home(settings)), settings.index.path)
    facts: dict[str, Any] = {"open_at": settings.index.open_at}
    if location.path is None:
        return facts | {"path": ":memory:"}
    facts["path"] = str(location.path)
    try:
        owner = inspect_file(location)
        facts["state"] = "will be built at the first search" if owner == "absent" else owner
        if owner != "absent":
            details = location.path.stat()
            facts["bytes"] = details.st_size
            facts["updated"] = _moment(details.st_mtime)
    except DshMemoryError as error:
        facts["problem"] = error.message
    except OSError as error:
        facts["problem"] = f"cannot be looked at: {error.strerror}"
    return facts


def _vault_facts(settings: Settings) -> dict[str, Any]:
    obsidian = settings.obsidian
    facts: dict[str, Any] = {"enabled": obsidian.enabled, "vault_path": obsidian.vault_path}
    if obsidian.vault_path is not None:
        facts["vault_exists"] = Path(obsidian.vault_path).is_dir()
        if obsidian.enabled and not facts["vault_exists"]:
            facts["problem"] = "there is no such directory: every search would fail at its note"
    return facts


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

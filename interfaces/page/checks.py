"""The page's two check buttons: look on demand, change nothing.

A finding is ``{"id", "state": "ok" | "bad" | "unknown", …values}``; the page has the words. The
endpoint is asked for its version and for the model's description, with the managed service's own
questions and for two seconds each, and only under the loopback policy; nothing is started or
pulled. The vault is judged from its metadata: a probe file would be a change, and one that a sync
program could carry away.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsh_memory.runtime.errors import ConfigError
from dsh_memory.runtime.loopback import addresses, literal_url, normalize_base_url

TIMEOUT_SECONDS = 2.0

Finding = dict[str, Any]


async def check_endpoint(values: Mapping[str, Any]) -> list[Finding]:
    """Ask the endpoint of ``jev.*`` whether it is there, its version, and whether it has the model.

    Args:
        values: Key -> value as it would be in effect; not yet judged.
    """
    from dsh_memory.runtime.ollama.errors import OllamaError
    from dsh_memory.runtime.ollama.probe import Refused, version_of

    try:
        base_url = normalize_base_url(str(values["jev.base_url"]))
    except ConfigError as error:
        return [_finding("url_refused", "bad", reason=error.message)]
    model = str(values["jev.model"])
    managed = values["jev.manage_ollama"] is True
    for address, port in addresses(base_url):
        try:
            version = await version_of(address, port, seconds=TIMEOUT_SECONDS)
        except Refused:
            continue
        except OllamaError as error:
            # Other System One servers may answer the scoring call all the same.
            state = "bad" if managed else "unknown"
            return [_finding("no_ollama", state, reason=error.message)]
        return [
            _finding("answers", "ok"),
            _version(version),
            await _model(literal_url(address, port), model, managed=managed),
        ]
    advice = "refused_managed_advice" if managed else "refused_advice"
    return [_finding("refused", "unknown" if managed else "bad", advice=advice)]


def check_vault(values: Mapping[str, Any]) -> list[Finding]:
    """Tell whether the directory of ``obsidian.vault_path`` exists and would accept a new file.

    Judged by `os.access` and `os.statvfs`; nothing is written, so quotas and the like stay unseen.

    Args:
        values: Key -> value as it would be in effect; not yet judged.
    """
    named = values["obsidian.vault_path"]
    if not isinstance(named, str) or not named:
        return [_finding("vault_unset", "bad")]
    if not named.startswith("/") or "\0" in named:
        return [_finding("vault_relative", "bad")]
    path = Path(named)
    try:
        path.stat()
        is_directory = path.is_dir()
        space = os.statvfs(path)
    except FileNotFoundError:
        return [_finding("vault_missing", "bad")]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return [_finding("vault_unreadable", "bad", reason=reason)]
    if not is_directory:
        return [_finding("vault_file", "bad")]
    known = (path / ".obsidian").is_dir()
    return [
        _finding("vault_exists", "ok"),
        _accepts_files(path, space),
        _finding("vault_obsidian", "ok") if known else _finding("vault_plain", "unknown"),
    ]


def _accepts_files(path: Path, space: os.statvfs_result) -> Finding:
    if space.f_flag & os.ST_RDONLY:
        return _finding("vault_read_only", "bad")
    if not os.access(path, os.W_OK | os.X_OK):
        return _finding("vault_forbidden", "bad")
    full = space.f_bavail == 0 or (space.f_files > 0 and space.f_favail == 0)
    return _finding("vault_full", "bad") if full else _finding("vault_writable", "ok")


def _version(version: str) -> Finding:
    from dsh_memory.runtime.ollama.errors import OllamaError
    from dsh_memory.runtime.ollama.probe import require_version

    try:
        require_version(version)
    except OllamaError as error:
        return _finding("version_refused", "bad", reason=error.message)
    return _finding("version", "ok", version=version[:40])


async def _model(root: str, model: str, *, managed: bool) -> Finding:
    from dsh_memory.runtime.ollama.errors import OllamaError
    from dsh_memory.runtime.ollama.model import inspect

    try:
        facts = await inspect(root, model, seconds=TIMEOUT_SECONDS)
    except OllamaError as error:
        return _finding("model_unknown", "unknown", model=model, reason=error.message)
    if facts is None:
        if managed:
            advice = "model_missing_managed_advice"
            return _finding("model_missing", "unknown", model=model, advice=advice)
        return _finding("model_missing", "bad", model=model, advice="model_missing_advice")
    if not facts.decides:
        return _finding("model_undecided", "bad", model=model)
    if facts.context_window is None:
        return _finding("model", "ok", model=model)
    return _finding("model_window", "ok", model=model, num_ctx=facts.context_window)


def _finding(name: str, state: str, **values: object) -> Finding:
    return {"id": name, "state": state, **values}

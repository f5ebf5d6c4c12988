"""Facts about the model side for a status report.

Without `check` nothing is started, created or connected to but the guardian's private Unix socket,
and that only when it exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
from dsh_memory.runtime.loopback import addresses, literal_url

if TYPE_CHECKING:
    from dsh_memory.runtime.config.settings import JevSettings

CHECK_SECONDS: Final = 2.0


async def model_status(
    jev: JevSettings, *, check: bool = False, service_state: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the facts as JSON.

    Args:
        jev: The effective settings.
        check: Also ask the endpoint for its version and the model's description, two seconds each.
            Nothing is started or pulled.
        service_state: What `runtime.ollama.service.ModelService.state` says, in the process that
            runs one.

    Returns:
        ``enabled``, ``model``, ``base_url``, ``manage_ollama``, ``context_window`` (the configured
        one); ``managed_service`` (``running``, and of a running one ``guardian``, ``service``,
        ``leases``, ``since``); ``state`` and ``last_failure`` of `service_state`; ``check``.
    """
    facts: dict[str, Any] = {
        "enabled": jev.enabled,
        "model": jev.model,
        "base_url": jev.base_url,
        "manage_ollama": jev.manage_ollama,
        "context_window": jev.context_window,
        "managed_service": await anyio.to_thread.run_sync(_managed_service, jev.base_url),
    }
    if service_state is not None:
        facts["state"] = service_state["state"]
        if "context_window" in service_state:
            facts["effective_context_window"] = service_state["context_window"]
        failure = service_state.get("last_failure")
        if failure is not None:
            facts["last_failure"] = {**failure, "at": _moment(failure["at"])}
    if check:
        facts["check"] = await _check(jev)
    return facts


def _managed_service(base_url: str) -> dict[str, Any]:
    """Tell whether a guardian of this user runs a service on the address."""
    from dsh_memory.runtime.ollama.lease import status
    from dsh_memory.runtime.ollama.rendezvous import find

    for address, port in addresses(base_url):
        place = find(address, port)
        answer = status(place) if place is not None and place.socket.exists() else None
        if answer is not None:
            return {
                "running": True,
                "guardian": answer["guardian"],
                "service": answer["service"],
                "leases": answer["leases"],
                "since": _moment(answer["started_at"]),
            }
    return {"running": False}


async def _check(jev: JevSettings) -> dict[str, Any]:
    from dsh_memory.runtime.ollama.errors import OllamaError
    from dsh_memory.runtime.ollama.model import inspect, require_decision_model
    from dsh_memory.runtime.ollama.probe import Refused, require_version, version_of

    for address, port in addresses(jev.base_url):
        facts: dict[str, Any] = {"reachable": True}
        try:
            facts["version"] = await version_of(address, port, seconds=CHECK_SECONDS)
            require_version(facts["version"])
        except Refused:
            continue
        except OllamaError as error:
            return facts | {"problem": error.message}
        try:
            model = await inspect(literal_url(address, port), jev.model, seconds=CHECK_SECONDS)
            facts["model_present"] = model is not None
            if model is not None:
                facts["declared_context_window"] = model.context_window
                facts["effective_context_window"] = require_decision_model(
                    jev.model, model, cap=jev.context_window
                )
        except OllamaError as error:
            facts["problem"] = error.message
        return facts
    return {"reachable": False, "problem": f"nothing listens on {jev.base_url}"}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

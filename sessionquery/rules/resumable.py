"""What observing a session checks beyond the rules that every read checks.

The original prepares an observed session for being resumed; these are the payloads that it then
refuses to take over.
"""

from __future__ import annotations

from typing import Any, Final

from dsh_memory.sessionquery.model.sessions import Event
from dsh_memory.sessionquery.rules.messages import BodyError, is_name, require

_REASONS: Final = frozenset(("initial", "resume", "change", "series"))


def check_observed(event: Event) -> None:
    """Check one event of a log that is otherwise right.

    Raises:
        BodyError: It could not be resumed from.
    """
    check = _CHECKS.get(event["type"])
    if check is None:
        return
    try:
        check(event["data"])
    except (AttributeError, KeyError, TypeError) as error:
        raise BodyError(f"event {event['seq']} ({event['type']}) cannot be resumed") from error
    except BodyError as error:
        raise BodyError(f"event {event['seq']} ({event['type']}) {error}") from None


def _request_header(data: Any) -> None:
    header = data["header"]
    config = header["config"]
    require(is_name(config.get("provider")) and is_name(config.get("model")), "names no model")
    if "adapterDefaults" in header:
        defaults = header["adapterDefaults"]
        require(
            all(value is True and config.get(key) is not None for key, value in defaults.items()),
            "has unusable adapter defaults",
        )
    require(data.get("reason") in _REASONS, "has an unknown reason")


def _stream(data: Any) -> None:
    require(isinstance(data.get("stream"), list), "has no stream")


def _image_offload(data: Any) -> None:
    targets = data["targets"]
    require(isinstance(targets, list) and bool(targets), "names no images")
    for target in targets:
        require("seq" in target and bool(target["imageIndexes"]), "names no image of an event")


_CHECKS: Final = {
    "request/header": _request_header,
    "assistant/message": _stream,
    "assistant/attempt": _stream,
    "image/offload": _image_offload,
}

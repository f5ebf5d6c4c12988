"""Is there an Ollama, and is it new enough? One small request, judged strictly."""

from __future__ import annotations

import re
import ssl
from typing import Any, Final

import anyio
from dsh_memory.runtime.loopback import literal_url
from dsh_memory.runtime.ollama.errors import (
    PROBE_FAILED,
    UNMANAGED_HINT,
    VERSION_TOO_OLD,
    VERSION_UNKNOWN,
    OllamaError,
    clip,
)

MINIMUM_VERSION: Final = (0, 35, 0)
PROBE_SECONDS: Final = 3.0
_ANSWER_BYTES: Final = 65536


class Refused(Exception):  # noqa: N818 - an outcome, no failure
    """Nothing listens on the address."""


def no_tls() -> ssl.SSLContext:
    """Return a TLS context that trusts nobody, for clients that speak plain HTTP only.

    Loading a certificate store takes longer than a probe, and would never be used.
    """
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def version_of(address: str, port: int, *, seconds: float = PROBE_SECONDS) -> str:
    """Return the version text of the Ollama on a loopback address.

    Raises:
        Refused: The connection was refused: the one outcome that allows starting a service.
        OllamaError: ``OLLAMA_PROBE_FAILED``: something is there, but it is no healthy Ollama.
    """
    import httpx

    base_url = literal_url(address, port)
    try:
        with anyio.fail_after(seconds):
            async with (
                httpx.AsyncClient(
                    trust_env=False, follow_redirects=False, timeout=seconds, verify=no_tls()
                ) as client,
                client.stream("GET", f"{base_url}/api/version") as response,
            ):
                content = b""
                async for chunk in response.aiter_raw():
                    content += chunk
                    if len(content) > _ANSWER_BYTES:
                        raise _failed(base_url, "its answer is far too long for a version")
    except TimeoutError as error:
        raise _failed(base_url, f"no answer within {seconds:g} s") from error
    except httpx.TimeoutException as error:
        raise _failed(base_url, f"no answer within {seconds:g} s") from error
    except httpx.ConnectError as error:
        if _was_refused(error):
            raise Refused from None
        raise _failed(base_url, clip(str(error)) or "the connection failed") from error
    except httpx.HTTPError as error:
        raise _failed(base_url, f"it does not speak HTTP ({clip(str(error), 80)})") from error
    return _version(base_url, response.status_code, content)


def require_version(text: str) -> None:
    """Check that a version is 0.35.0 or newer; a suffix such as ``-rc1`` does not count.

    Raises:
        OllamaError: ``OLLAMA_VERSION_TOO_OLD``; ``OLLAMA_VERSION_UNKNOWN`` for a text that is no
            version, and for the ``0.0.0`` of a self-built server, which says nothing.
    """
    match = re.fullmatch(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-+].*)?", text, re.ASCII)
    if match is None:
        raise OllamaError(
            f'The Ollama server states the version "{clip(text, 60)}", which cannot be read; '
            "0.35.0 or newer is needed.",
            code=VERSION_UNKNOWN,
            hint=f"Install a released Ollama, {UNMANAGED_HINT}.",
        )
    version = tuple(int(part) for part in match.groups())
    if version == (0, 0, 0):
        raise OllamaError(
            f'The Ollama server states the version "{clip(text, 60)}": a self-built one, of which '
            "nobody can tell whether it is 0.35.0 or newer.",
            code=VERSION_UNKNOWN,
            hint=f"Use a released Ollama, or build it with its version set, {UNMANAGED_HINT}.",
        )
    if version < MINIMUM_VERSION:
        raise OllamaError(
            f"Ollama {clip(text, 60)} is too old; 0.35.0 or newer is needed for /v1/systemone.",
            code=VERSION_TOO_OLD,
            hint="Update Ollama and run the command again.",
        )


def _version(base_url: str, status: int, content: bytes) -> str:
    import json

    if status != 200:
        raise _failed(base_url, f"it answers GET /api/version with HTTP {status}")
    try:
        answer: Any = json.loads(content)
    except ValueError:
        answer = None
    version = answer.get("version") if isinstance(answer, dict) else None
    if not isinstance(version, str):
        raise _failed(base_url, "its answer to GET /api/version is not Ollama's")
    return version


def _was_refused(error: BaseException | None) -> bool:
    """Whether a refused connection is the root cause, however deep the libraries wrapped it."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, ConnectionRefusedError):
            return True
        if isinstance(current, BaseExceptionGroup):
            pending.extend(current.exceptions)
        pending.extend((current.__cause__, current.__context__))
    return False


def _failed(base_url: str, reason: str) -> OllamaError:
    return OllamaError(
        f"Something listens on {base_url}, but it is no healthy Ollama: {reason}.",
        code=PROBE_FAILED,
        hint="No service was started. See what uses the port; free it, or choose another one with "
        "jev.base_url.",
    )

"""The model on the server: is it there, pull it if not, and is it one that can judge?"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
from dsh_memory.runtime.config.settings import CONTEXT_WINDOW_MINIMUM
from dsh_memory.runtime.ollama.client import CALL_SECONDS, connect, import_ollama
from dsh_memory.runtime.ollama.errors import (
    CONTEXT_TOO_SMALL,
    CONTEXT_UNKNOWN,
    NOT_A_DECISION_MODEL,
    PULL_FAILED,
    PULL_STALLED,
    SHOW_FAILED,
    OllamaError,
    clip,
)

if TYPE_CHECKING:
    import ollama
    from dsh_memory.runtime.progress import Progress

CAPABILITY: Final = "decision"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What ``/api/show`` says of a model.

    Attributes:
        context_window: The declared ``num_ctx`` in tokens; None when it declares none.
        decides: Whether it is a decision model.
    """

    context_window: int | None
    decides: bool


async def prepare(
    base_url: str, name: str, *, silence: float, progress: Progress | None
) -> ModelFacts:
    """Return the facts of the model, pulled first if it is missing.

    Args:
        base_url: A numeric loopback root.
        name: The model's name.
        silence: Seconds without a line after which a pull counts as hanging.
        progress: Is told every line of a pull.

    Raises:
        OllamaError: ``OLLAMA_SHOW_FAILED``, ``OLLAMA_PULL_FAILED``, ``OLLAMA_PULL_STALLED``.
    """
    package = await anyio.to_thread.run_sync(import_ollama, abandon_on_cancel=True)
    async with _client(package, base_url, min(silence, CALL_SECONDS)) as client:
        facts = await _show(package, client, name)
    if facts is not None:
        return facts
    if progress is not None:
        progress.service(f"Pulling the model {name}.")
    async with _client(package, base_url, silence) as client:
        await _pull(package, client, name, silence=silence, progress=progress)
    async with _client(package, base_url, min(silence, CALL_SECONDS)) as client:
        facts = await _show(package, client, name)
    if facts is None:
        raise OllamaError(
            f'The server reported a successful pull of "{name}" but does not know the model.',
            code=PULL_FAILED,
            hint="Check the model's name with `ollama list`.",
        )
    return facts


async def inspect(base_url: str, name: str, *, seconds: float) -> ModelFacts | None:
    """Return the facts of the model, or None when the server does not have it; never pulls.

    Raises:
        OllamaError: ``OLLAMA_SHOW_FAILED``.
    """
    package = await anyio.to_thread.run_sync(import_ollama, abandon_on_cancel=True)
    async with _client(package, base_url, seconds) as client:
        return await _show(package, client, name)


def require_decision_model(name: str, facts: ModelFacts, *, cap: int | None) -> int:
    """Return the effective context window: ``num_ctx``, capped by a configured one.

    Raises:
        OllamaError: ``OLLAMA_NOT_A_DECISION_MODEL``, ``OLLAMA_CONTEXT_UNKNOWN`` or
            ``OLLAMA_CONTEXT_TOO_SMALL``.
    """
    if not facts.decides:
        raise OllamaError(
            f'The model "{name}" is no decision model: it does not have the capability '
            f'"{CAPABILITY}".',
            code=NOT_A_DECISION_MODEL,
            hint="Choose a decision model, for instance: dsh-memory config set jev.model nimble",
        )
    if facts.context_window is None:
        raise OllamaError(
            f'The model "{name}" declares no context window (num_ctx).',
            code=CONTEXT_UNKNOWN,
            hint="Choose a model that declares num_ctx, or add `PARAMETER num_ctx 8192` to its "
            "Modelfile and create it anew.",
        )
    if facts.context_window < CONTEXT_WINDOW_MINIMUM:
        raise OllamaError(
            f'The model "{name}" declares a context window of {facts.context_window} tokens; '
            f"at least {CONTEXT_WINDOW_MINIMUM} are needed.",
            code=CONTEXT_TOO_SMALL,
            hint="Choose a model with a larger num_ctx.",
        )
    return facts.context_window if cap is None else min(facts.context_window, cap)


def declared_window(parameters: str | None) -> int | None:
    """Read ``num_ctx`` out of a model's parameter text; None when it has none.

    The text has one ``name   value`` a line in any order; numbers are in Go form, so that a large
    one may read ``1e+06``.

    Raises:
        ValueError: The line is there, but holds no whole positive number.
    """
    found: list[int] = []
    for line in (parameters or "").splitlines():
        name, *values = line.split()[:2] or [""]
        if name != "num_ctx":
            continue
        text = values[0] if values else ""
        if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12})?([eE]\+?[0-9]{1,2})?", text):
            raise ValueError(text)
        number = float(text)
        if not number.is_integer() or number < 1:
            raise ValueError(text)
        found.append(int(number))
    return min(found, default=None)


@contextlib.asynccontextmanager
async def _client(package: Any, base_url: str, silence: float) -> AsyncIterator[ollama.AsyncClient]:
    client = connect(package, base_url, silence=silence)
    try:
        yield client
    finally:
        with anyio.CancelScope(shield=True):
            await client.close()  # type: ignore[no-untyped-call]


async def _show(package: Any, client: ollama.AsyncClient, name: str) -> ModelFacts | None:
    import httpx

    try:
        answer = await client.show(name)
    except package.ResponseError as error:
        text = str(error.error)
        if error.status_code == 404 and "not found" in text and "page" not in text:
            return None
        raise _show_failed(name, f"HTTP {error.status_code}: {clip(text)}") from error
    except httpx.TimeoutException as error:
        raise _show_failed(name, "no answer in time") from error
    except (httpx.HTTPError, ConnectionError) as error:
        raise _show_failed(name, clip(str(error)) or "the connection broke") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise _show_failed(name, "the answer is not Ollama's") from error
    try:
        window = declared_window(answer.parameters)
    except ValueError as error:
        raise OllamaError(
            f'The model "{name}" declares num_ctx "{clip(str(error), 40)}", which is no whole '
            "number of tokens.",
            code=CONTEXT_UNKNOWN,
            hint="Correct the model's Modelfile, or choose another model.",
        ) from None
    return ModelFacts(context_window=window, decides=CAPABILITY in (answer.capabilities or ()))


async def _pull(
    package: Any,
    client: ollama.AsyncClient,
    name: str,
    *,
    silence: float,
    progress: Progress | None,
) -> None:
    import httpx

    last = ""
    try:
        async with contextlib.aclosing(_lines(client, name)) as lines:
            async for status, completed, total in lines:
                last = status
                if progress is not None:
                    progress.pull(status, completed, total)
    except package.ResponseError as error:
        raise _pull_failed(name, clip(str(error.error))) from error
    except httpx.TimeoutException as error:
        raise OllamaError(
            f'The pull of "{name}" hangs: the server has said nothing for {silence:g} s '
            f'(last: "{clip(last, 80)}").',
            code=PULL_STALLED,
            hint=f"Try `ollama pull {name}` yourself; what is loaded already is kept. "
            "jev.load_timeout sets how long a pull may stay silent.",
        ) from error
    except (httpx.HTTPError, ConnectionError) as error:
        raise _pull_failed(name, clip(str(error)) or "the connection broke") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise _pull_failed(name, "an answer line is not Ollama's") from error
    if last != "success":
        raise _pull_failed(name, f'it ended without success (last: "{clip(last, 80)}")')


async def _lines(
    client: ollama.AsyncClient, name: str
) -> AsyncGenerator[tuple[str, int | None, int | None]]:
    stream = await client.pull(name, stream=True)
    # The SDK promises an iterator; it is a generator, and only closing it ends the request.
    async with contextlib.aclosing(stream) as parts:  # type: ignore[type-var]
        async for part in parts:
            yield part.status or "", part.completed, part.total


def _show_failed(name: str, reason: str) -> OllamaError:
    return OllamaError(
        f'The server could not describe the model "{name}": {reason}.',
        code=SHOW_FAILED,
        hint=f"Try `ollama show {name}`.",
    )


def _pull_failed(name: str, reason: str) -> OllamaError:
    return OllamaError(
        f'The pull of "{name}" failed: {reason}.',
        code=PULL_FAILED,
        hint=f"Check the model's name and the network, or try `ollama pull {name}` yourself.",
    )

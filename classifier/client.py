"""One scoring request to ``POST /v1/systemone`` through the `openai` SDK.

The SDK's ambient defaults are switched off: no value of ``OPENAI_*`` is used, no proxy, no
redirect, no retry, no logging. Importing this module loads `openai`, which takes about a second;
it is imported only when a request is made.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Final, Self

import anyio
import httpx2
from dsh_memory.classifier import server_replies as failures
from dsh_memory.classifier.answers import Answer, parse
from dsh_memory.classifier.transport import LoopbackTransport
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.runtime.loopback import addresses, normalize_base_url

_ROOT_HANDLERS = list(logging.root.handlers)

import openai  # noqa: E402

# `OPENAI_LOG` makes the import itself install a root handler that prints request details.
for _handler in [item for item in logging.root.handlers if item not in _ROOT_HANDLERS]:
    logging.root.removeHandler(_handler)
for _name in ("openai", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)

_API_KEY: Final = "ollama"


class _QuietOpenAI(openai.AsyncOpenAI):
    """The SDK client without the headers that it takes from the environment."""

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {"Accept": "application/json", "Content-Type": "application/json"}


class SystemOneClient:
    """A connection to one endpoint, used as an async context manager.

    Args:
        endpoint: A loopback root and a model.
        timeout: Seconds for one request, from connecting to the last byte of the answer.

    Raises:
        ConfigError: ``CONFIG_BASE_URL`` when the base URL is no allowed loopback root.
    """

    def __init__(self, endpoint: Endpoint, *, timeout: float) -> None:
        root = normalize_base_url(endpoint.base_url)
        self._endpoint = endpoint
        self._timeout = timeout
        self._sdk = _QuietOpenAI(
            base_url=f"{root}/v1",
            api_key=_API_KEY,
            max_retries=0,
            timeout=timeout,
            http_client=httpx2.AsyncClient(
                transport=LoopbackTransport(addresses(root)),
                trust_env=False,
                follow_redirects=False,
                timeout=timeout,
            ),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._sdk.close()

    async def ask(self, content: bytes, asked: int) -> Answer:
        """Send one body as it is and return its validated scores.

        Args:
            content: The exact JSON body.
            asked: How many items it holds.

        Raises:
            JevError: The request failed or its answer is not valid; nothing was retried.
        """
        try:
            with anyio.fail_after(self._timeout):
                response = await self._sdk.post(
                    "/systemone", content=content, cast_to=httpx2.Response
                )
        except (TimeoutError, openai.APITimeoutError) as error:
            raise failures.timed_out(self._endpoint, self._timeout) from error
        except openai.APIStatusError as error:
            raise failures.from_status(self._endpoint, error.response) from None
        except openai.APIConnectionError as error:
            raise failures.from_connection(self._endpoint, error) from error
        if response.status_code != 200:
            raise failures.from_status(self._endpoint, response)
        return parse(response.content, asked)

"""The HTTP interface of the page: static files, and a few JSON calls behind the gate.

Only ``POST /api/save`` writes. Every failure is ``{"error": {code, message, hint, retryable}}``, a
refused draft ``{"problems": {key: error}}``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
from dsh_memory.interfaces.page import checks, form
from dsh_memory.interfaces.page.security import Gate, GateMiddleware, refused
from dsh_memory.runtime.errors import ConfigError, DshMemoryError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

STATIC = Path(__file__).parent / "static"
_STATUS = {"CONFIG_CONFLICT": 409, "CONFIG_WRITE_FAILED": 403}

T = TypeVar("T")


class TokenExchange(BaseModel):
    """The one-time token of the address."""

    model_config = ConfigDict(extra="forbid", strict=True)

    token: str = Field(max_length=200)


def build_app(source: form.Source, gate: Gate) -> Starlette:
    """Return the page's application for one configuration file and one browser tab."""
    calls = _Calls(source, gate)
    routes = [
        Route("/api/session", calls.session, methods=["POST"]),
        Route("/api/form", calls.read_form, methods=["GET"]),
        Route("/api/revision", calls.revision, methods=["GET"]),
        Route("/api/problems", calls.problems, methods=["POST"]),
        Route("/api/save", calls.save, methods=["POST"]),
        Route("/api/check/endpoint", calls.check_endpoint, methods=["POST"]),
        Route("/api/check/vault", calls.check_vault, methods=["POST"]),
        Route("/api/status", calls.status, methods=["GET"]),
        Mount("/", StaticFiles(directory=STATIC, html=True)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(GateMiddleware, gate=gate)],
        exception_handlers={DshMemoryError: _failed, Exception: _failed},
    )


class _Calls:
    """The handlers; file work runs in worker threads."""

    def __init__(self, source: form.Source, gate: Gate) -> None:
        self._source = source
        self._gate = gate

    async def session(self, request: Request) -> Response:
        try:
            exchange = TokenExchange.model_validate_json(await request.body())
        except ValidationError as error:
            return _malformed(error)
        key = self._gate.exchange(exchange.token)
        if key is None:
            return refused(
                401,
                "PAGE_TOKEN",
                "This address was already used or belongs to another run.",
                hint="Each address is good for one tab. Run dsh-memory config page again.",
            )
        return JSONResponse({"session": key})

    async def read_form(self, request: Request) -> Response:
        return JSONResponse(await _in_thread(partial(form.read_form, self._source)))

    async def revision(self, request: Request) -> Response:
        return JSONResponse(
            {"revision": await _in_thread(partial(form.current_revision, self._source))}
        )

    async def problems(self, request: Request) -> Response:
        async def judge(draft: form.Draft) -> Response:
            found = await _in_thread(partial(form.find_draft_problems, self._source, draft))
            return JSONResponse({"problems": found})

        return await _with_draft(request, judge)

    async def save(self, request: Request) -> Response:
        async def write(draft: form.Draft) -> Response:
            try:
                await _in_thread(partial(form.save_draft, self._source, draft))
            except ConfigError as error:
                status = _STATUS.get(error.code)
                body = {"error": form.error_json(error)}
                if status is not None:
                    return JSONResponse(body, status_code=status)
                found = await _in_thread(partial(form.find_draft_problems, self._source, draft))
                return JSONResponse({"problems": found, **body}, status_code=422)
            return JSONResponse(await _in_thread(partial(form.read_form, self._source)))

        return await _with_draft(request, write)

    async def check_endpoint(self, request: Request) -> Response:
        async def look(draft: form.Draft) -> Response:
            values = await _in_thread(partial(form.values_after, self._source, draft))
            return JSONResponse(
                {
                    "findings": await checks.check_endpoint(values),
                    "subject": {
                        "base_url": values["jev.base_url"],
                        "model": values["jev.model"],
                    },
                }
            )

        return await _with_draft(request, look)

    async def check_vault(self, request: Request) -> Response:
        async def look(draft: form.Draft) -> Response:
            values = await _in_thread(partial(form.values_after, self._source, draft))
            return JSONResponse(
                {
                    "findings": await _in_thread(partial(checks.check_vault, values)),
                    "subject": {"vault_path": values["obsidian.vault_path"]},
                }
            )

        return await _with_draft(request, look)

    async def status(self, request: Request) -> Response:
        from dsh_memory.pipeline.status.collect import collect_status

        loaded = await _in_thread(self._source.load)
        facts: dict[str, Any] = await collect_status(loaded, check=False)
        return JSONResponse({"status": facts})


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, DshMemoryError):
        return JSONResponse({"error": error.to_json()}, status_code=422)
    return refused(500, "INTERNAL", f"Unexpected {type(error).__name__}: {str(error)[:300]}")


async def _with_draft(
    request: Request, work: Callable[[form.Draft], Awaitable[Response]]
) -> Response:
    try:
        draft = form.Draft.model_validate_json(await request.body())
    except ValidationError as error:
        return _malformed(error)
    return await work(draft)


def _malformed(error: ValidationError) -> Response:
    problem = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    return refused(400, "PAGE_REQUEST", f"The request is malformed at {place}: {problem['msg']}.")


async def _in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)

"""What a server refuses: each case has its own code, the server's words and a remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from dsh_memory.classifier.errors import HINTS, JevError, visible
from dsh_memory.classifier.filter import score_texts
from dsh_memory.runtime.endpoint import Endpoint
from pytest_httpserver import HTTPServer

pytestmark = pytest.mark.anyio

OBJECT_OVERFLOW = {
    "error": {
        "code": 400,
        "message": "request (900 tokens) exceeds the available context size (512 tokens)",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 900,
        "n_ctx": 512,
    }
}

CASES: list[tuple[str, int, Any, str, str]] = [
    (
        "too large",
        413,
        {"error": "request body must not exceed 64 KiB without images"},
        "JEV_BODY_TOO_LARGE",
        "64 KiB",
    ),
    (
        "question count",
        400,
        {"error": "questions must contain 1–64 fields"},
        "JEV_REQUEST_REJECTED",
        "1–64",
    ),
    (
        "state kind",
        400,
        {"error": "state: must be a string, object, or array"},
        "JEV_REQUEST_REJECTED",
        "state: must be",
    ),
    (
        "state empty",
        400,
        {"error": "state must not be empty"},
        "JEV_REQUEST_REJECTED",
        "must not be empty",
    ),
    (
        "bad question",
        400,
        {"error": 'question "item_0": criteria is not supported here'},
        "JEV_REQUEST_REJECTED",
        "item_0",
    ),
    (
        "model missing",
        404,
        {"error": "model 'nimble' not found"},
        "JEV_MODEL_MISSING",
        "'nimble'",
    ),
    (
        "model missing, as an object",
        404,
        {"error": {"code": 404, "message": "model not found", "type": "not_found_error"}},
        "JEV_MODEL_MISSING",
        "model not found",
    ),
    ("server too old", 404, "404 page not found", "JEV_SERVER_TOO_OLD", "too old"),
    (
        "another server without the path",
        404,
        {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}},
        "JEV_NO_ENDPOINT",
        "File Not Found",
    ),
    (
        "another server without the path, with a detail",
        404,
        {"detail": "Not Found"},
        "JEV_NO_ENDPOINT",
        "Not Found",
    ),
    (
        "no decision model",
        400,
        {"error": '"llama3.2" does not support decision'},
        "JEV_NO_DECISION_MODEL",
        "llama3.2",
    ),
    (
        "no decision model, as an object",
        501,
        {"error": {"code": 501, "message": "not supported by this model", "type": "x"}},
        "JEV_NO_DECISION_MODEL",
        "not supported",
    ),
    (
        "prompt too long",
        400,
        {"error": "prompt 0 has 9000 tokens; expected 1–2048 (input is never truncated)"},
        "JEV_CONTEXT_OVERFLOW",
        "1–2048",
    ),
    ("prompt too long, as an object", 400, OBJECT_OVERFLOW, "JEV_CONTEXT_OVERFLOW", "512 tokens"),
    (
        "queue full",
        503,
        {"error": "server busy, please try again. maximum pending requests exceeded"},
        "JEV_BUSY",
        "maximum pending",
    ),
    (
        "still loading",
        503,
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        "JEV_BUSY",
        "Loading model",
    ),
    ("rate limit", 429, {"detail": {"message": "slow down"}}, "JEV_BUSY", "slow down"),
    ("client gone", 499, {"error": "request canceled"}, "JEV_REQUEST_CANCELLED", "canceled"),
    (
        "runner died",
        500,
        {"error": "llama runner process has terminated: signal: killed"},
        "JEV_SERVER_FAILED",
        "signal: killed",
    ),
    ("gateway", 502, "<html>Bad Gateway</html>", "JEV_SERVER_FAILED", "Bad Gateway"),
    ("foreign host", 403, "", "JEV_FORBIDDEN", "HTTP 403"),
    ("credentials", 401, {"error": "unauthorized"}, "JEV_FORBIDDEN", "unauthorized"),
    (
        "validation",
        422,
        {"detail": [{"loc": ["body"], "msg": "Field required", "type": "missing"}]},
        "JEV_REQUEST_REJECTED",
        "Field required",
    ),
    ("conflict", 409, "", "JEV_HTTP_STATUS", "HTTP 409"),
    ("request timeout", 408, "", "JEV_HTTP_STATUS", "HTTP 408"),
    ("teapot", 418, "short and stout", "JEV_HTTP_STATUS", "stout"),
    ("other success", 204, "", "JEV_HTTP_STATUS", "HTTP 204"),
    ("html", 200, "<!doctype html><title>It works</title>", "JEV_NOT_JSON", "It works"),
    ("empty", 200, "", "JEV_NOT_JSON", "empty body"),
]


def serve(httpserver: HTTPServer, status: int, answer: Any, **headers: str) -> None:
    expected = httpserver.expect_request("/v1/systemone", method="POST")
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    kind = "text/plain; charset=utf-8" if isinstance(answer, str) else "application/json"
    expected.respond_with_data(text, status=status, content_type=kind, headers=headers)


async def failure(endpoint: Endpoint) -> JevError:
    with pytest.raises(JevError) as caught:
        await score_texts("Which database?", ["a", "b"], endpoint=endpoint)
    return caught.value


@pytest.mark.parametrize(
    ("status", "answer", "code", "quoted"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
async def test_each_refusal_has_its_code_and_is_not_retried(
    httpserver: HTTPServer,
    endpoint_at: Callable[..., Endpoint],
    status: int,
    answer: Any,
    code: str,
    quoted: str,
) -> None:
    serve(httpserver, status, answer)
    error = await failure(endpoint_at(httpserver.url_for("/")))
    assert error.code == code
    assert quoted in error.message
    overflow = "context of 512" if "512" in error.message else "jev.context_window 2048`"
    remedies = {"JEV_MODEL_MISSING": "`ollama pull nimble`", "JEV_CONTEXT_OVERFLOW": overflow}
    assert error.hint is not None
    assert remedies.get(code, HINTS[code]) in error.hint
    assert len(httpserver.log) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_named_and_not_followed(
    httpserver: HTTPServer, endpoint_at: Callable[..., Endpoint], status: int
) -> None:
    target = httpserver.url_for("/elsewhere")
    serve(httpserver, status, "", Location=target)
    httpserver.expect_request("/elsewhere").respond_with_json({})
    error = await failure(endpoint_at(httpserver.url_for("/")))
    assert error.code == "JEV_REDIRECT"
    assert target in error.message
    assert [request.path for request, _ in httpserver.log] == ["/v1/systemone"]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_server_that_asks_for_a_retry_gets_none(
    httpserver: HTTPServer, endpoint_at: Callable[..., Endpoint], status: int
) -> None:
    serve(httpserver, status, "", **{"Retry-After": "0", "x-should-retry": "true"})
    await failure(endpoint_at(httpserver.url_for("/")))
    assert len(httpserver.log) == 1


async def test_server_text_is_clipped_and_inert(
    httpserver: HTTPServer, endpoint_at: Callable[..., Endpoint]
) -> None:
    hostile = "\x1b]0;owned\x07\u202e\u2028[bold]" + "A" * 100_000
    serve(httpserver, 500, {"error": hostile})
    error = await failure(endpoint_at(httpserver.url_for("/")))
    assert len(error.message) < 350
    assert error.message.isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\n lines\t here", "two lines here"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\x00b\x9bc", "a\\x00b\\x9bc"),
        ("\u202eabc\ufeff", "\\u202eabc\\ufeff"),
        ("\ud800", "\\ud800"),
        ("模型 😀", "模型 😀"),
    ],
)
async def test_foreign_text_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


async def test_foreign_text_is_cut() -> None:
    assert visible("x" * 300) == "x" * 199 + "…"
    assert visible(" " * 100_000 + "x", 10) == "…"


async def test_every_code_has_a_remedy_and_a_stable_name() -> None:
    assert all(code.startswith("JEV_") and hint for code, hint in HINTS.items())


async def test_which_failures_may_pass_by_themselves() -> None:
    retryable = {code for code in HINTS if JevError(code, "x").retryable}
    assert retryable == {
        "JEV_BUSY",
        "JEV_CONNECTION_FAILED",
        "JEV_CONNECTION_REFUSED",
        "JEV_REQUEST_CANCELLED",
        "JEV_SERVER_FAILED",
        "JEV_TIMEOUT",
    }

"""Starting the managed service: the good way, and each fault with its code and words."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import pytest
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.runtime.ollama.errors import OllamaError
from dsh_memory.runtime.ollama.service import ModelService

WarmUp = Callable[[Endpoint], Awaitable[None]]


@pytest.fixture
def run_service(fake_ollama: Any, warm_up: WarmUp, recorder: Any) -> Callable[..., Endpoint]:
    """Ask a service for its endpoint once and close it."""

    def run(start_seconds: float = 30.0, **settings: Any) -> Endpoint:
        async def main() -> Endpoint:
            async with ModelService(
                fake_ollama.settings(**settings),
                warm_up=warm_up,
                progress=recorder,
                environ=fake_ollama.environ,
                start_seconds=start_seconds,
            ) as service:
                return await service.endpoint()

        return anyio.run(main)

    return run


def test_nothing_runs_so_the_service_is_started_used_and_ended(
    fake_ollama: Any, run_service: Callable[..., Endpoint], recorder: Any
) -> None:
    endpoint = run_service(context_window=4096)
    assert endpoint == Endpoint(fake_ollama.base_url, "nimble", 4096)
    assert fake_ollama.starts() == 1
    assert fake_ollama.requests()[-2:] == ["/api/show", "/v1/systemone"]
    assert "Starting `ollama serve`." in recorder.stages
    assert recorder.pulls == []
    fake_ollama.wait_gone()


def test_the_service_gets_a_scrubbed_environment_and_no_descriptors(
    fake_ollama: Any, run_service: Callable[..., Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OLLAMA_API_KEY", "OPENAI_API_KEY", "DSH_MEMORY_MCP_TOKEN", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://secret.example")
    monkeypatch.setenv("OLLAMA_HOST", "0.0.0.0:1")
    monkeypatch.setenv("OLLAMA_MODELS", "/models")
    left, right = socket.socketpair()
    for entry in (left, right):
        entry.set_inheritable(True)
    run_service()
    left.close()
    right.close()
    started = fake_ollama.log()[0]
    environment = started["environment"]
    assert environment["OLLAMA_HOST"] == f"127.0.0.1:{fake_ollama.port}"
    assert environment["OLLAMA_NO_CLOUD"] == "1"
    assert environment["OLLAMA_MODELS"] == "/models"
    assert "http://secret.example" not in environment.values()
    # Its own log file, its pipe to the runner, and the listing itself are its only descriptors.
    assert len(started["descriptors"]) <= 6
    keys = {entry.get("authorization") for entry in fake_ollama.log()}
    assert not any(key and "secret" in key for key in keys)


def test_a_missing_model_is_pulled_once_and_progress_is_told(
    fake_ollama: Any, run_service: Callable[..., Endpoint], recorder: Any
) -> None:
    fake_ollama.order(missing=True, pull="backwards")
    assert run_service().context_window == 8192
    assert fake_ollama.requests().count("/api/pull") == 1
    assert ("pulling abc", 20, 100) in recorder.pulls
    assert recorder.pulls[-1][0] == "success"


@pytest.mark.parametrize(
    ("parameters", "window"),
    [("num_ctx 1e+06", 1_000_000), ("num_ctx   1024", 1024), ("a b\nnum_ctx 2048.0\n", 2048)],
)
def test_the_window_is_read_in_gos_number_form(
    fake_ollama: Any, run_service: Callable[..., Endpoint], parameters: str, window: int
) -> None:
    fake_ollama.order(parameters=parameters)
    assert run_service().context_window == window


FAULTS: list[tuple[str, dict[str, Any], dict[str, Any], str, list[str]]] = [
    (
        "refuses to start",
        {"refuse_start": "Error: could not create directory: read-only file system"},
        {},
        "OLLAMA_START_FAILED",
        ["exit status 1", "read-only file system"],
    ),
    (
        "dies soon",
        {"never_answers": True, "die_after": 0.2},
        {},
        "OLLAMA_START_FAILED",
        ["status 3"],
    ),
    (
        "dies while loading",
        {"die_on": "/v1/systemone"},
        {},
        "OLLAMA_SERVICE_ENDED",
        ["exit status 3", "out of memory"],
    ),
    (
        "never listens",
        {"never_listens": True},
        {"start_seconds": 1.0},
        "OLLAMA_START_TIMEOUT",
        ["does not answer within 1 s"],
    ),
    (
        "never answers",
        {"never_answers": True},
        {"start_seconds": 1.0},
        "OLLAMA_START_TIMEOUT",
        ["does not answer within 1 s"],
    ),
    ("too old", {"version": "0.34.9"}, {}, "OLLAMA_VERSION_TOO_OLD", ["0.34.9", "0.35.0"]),
    ("no version", {"version": "nightly"}, {}, "OLLAMA_VERSION_UNKNOWN", ["nightly", "0.35.0"]),
    ("self-built", {"version": "0.0.0"}, {}, "OLLAMA_VERSION_UNKNOWN", ["0.0.0", "self-built"]),
    ("version is a number", {"version": 40}, {}, "OLLAMA_START_FAILED", ["not Ollama's"]),
    (
        "pull fails",
        {"missing": True, "pull": "fails"},
        {},
        "OLLAMA_PULL_FAILED",
        ["nimble", "max retries exceeded"],
    ),
    (
        "pull is refused",
        {"missing": True, "pull": "refused"},
        {},
        "OLLAMA_PULL_FAILED",
        ["invalid model name"],
    ),
    (
        "pull hangs",
        {"missing": True, "pull": "hangs"},
        {"load_timeout": 2.0},
        "OLLAMA_PULL_STALLED",
        ["2 s", "pulling abc"],
    ),
    (
        "pull ends early",
        {"missing": True, "pull": "no-success"},
        {},
        "OLLAMA_PULL_FAILED",
        ["without success", "writing manifest"],
    ),
    ("pull is garbage", {"missing": True, "pull": "garbage"}, {}, "OLLAMA_PULL_FAILED", ["line"]),
    ("no num_ctx", {"parameters": "stop x"}, {}, "OLLAMA_CONTEXT_UNKNOWN", ["num_ctx"]),
    ("no parameters", {"parameters": None}, {}, "OLLAMA_CONTEXT_UNKNOWN", ["num_ctx"]),
    ("num_ctx 512", {"parameters": "num_ctx 512"}, {}, "OLLAMA_CONTEXT_TOO_SMALL", ["512", "1024"]),
    ("num_ctx broken", {"parameters": "num_ctx 1.5"}, {}, "OLLAMA_CONTEXT_UNKNOWN", ["1.5"]),
    (
        "no decision model",
        {"capabilities": ["completion"]},
        {},
        "OLLAMA_NOT_A_DECISION_MODEL",
        ["nimble", "decision"],
    ),
    ("no capabilities", {"capabilities": None}, {}, "OLLAMA_NOT_A_DECISION_MODEL", ["decision"]),
    ("show fails", {"show": [500, '{"error":"boom"}']}, {}, "OLLAMA_SHOW_FAILED", ["500", "boom"]),
    ("show redirects", {"show": [307, ""]}, {}, "OLLAMA_SHOW_FAILED", ["307"]),
    ("show is a page", {"show": [200, "<html>"]}, {}, "OLLAMA_SHOW_FAILED", ["not Ollama's"]),
    ("show is no object", {"show": [500, "[1]"]}, {}, "OLLAMA_SHOW_FAILED", ["not Ollama's"]),
    ("show is unknown", {"show": [404, "404 page not found"]}, {}, "OLLAMA_SHOW_FAILED", ["404"]),
    (
        "loads too slowly",
        {"load_seconds": 40},
        {"load_timeout": 1.5},
        "OLLAMA_LOAD_TIMEOUT",
        ["1.5 s"],
    ),
    (
        "resists the end",
        {"version": "0.1.0", "ignore_term": True, "runner_ignores_term": True},
        {},
        "OLLAMA_VERSION_TOO_OLD",
        [],
    ),
    (
        "leaves a runner in its own session",
        {"version": "0.1.0", "runner_ignores_term": True, "runner_session": True},
        {},
        "OLLAMA_VERSION_TOO_OLD",
        [],
    ),
]


@pytest.mark.parametrize(
    ("faults", "settings", "code", "words"),
    [pytest.param(*rest, id=name) for name, *rest in FAULTS],
)
def test_a_fault_has_its_code_and_words_and_leaves_nothing(
    fake_ollama: Any,
    run_service: Callable[..., Endpoint],
    faults: dict[str, Any],
    settings: dict[str, Any],
    code: str,
    words: list[str],
) -> None:
    fake_ollama.order(**faults)
    with pytest.raises(DshMemoryError) as caught:
        run_service(**settings)
    assert caught.value.code == code
    for word in words:
        assert word in caught.value.message
    assert caught.value.hint
    # A service that is ended within a second may not even have got to its log.
    assert fake_ollama.starts() == 1 or (
        code == "OLLAMA_START_TIMEOUT" and not fake_ollama.starts()
    )
    fake_ollama.wait_gone()


def test_without_an_executable_the_remedy_is_named(
    fake_ollama: Any, run_service: Callable[..., Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake_ollama.directory / "ollama").unlink()
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(OllamaError, match="no `ollama` on PATH") as caught:
        run_service()
    assert caught.value.code == "OLLAMA_NOT_INSTALLED"


def test_an_executable_that_cannot_run_is_a_failed_start(
    fake_ollama: Any, run_service: Callable[..., Endpoint]
) -> None:
    executable = fake_ollama.directory / "ollama"
    executable.unlink()
    executable.write_bytes(b"\x7fELF nothing")
    executable.chmod(0o755)
    with pytest.raises(OllamaError, match="could not be started") as caught:
        run_service()
    assert caught.value.code == "OLLAMA_START_FAILED"


@contextlib.contextmanager
def _foreign(port: int, kind: str) -> Iterator[None]:
    """Occupy the port: silently, with a program that hangs up, or with some HTTP server."""
    if kind in ("http", "redirect", "error"):

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response({"http": 200, "redirect": 307, "error": 503}[kind])
                if kind == "redirect":
                    self.send_header("location", "http://127.0.0.1:9/api/version")
                self.send_header("content-length", "5")
                self.end_headers()
                self.wfile.write(b"hello")

            def log_message(self, *_: Any) -> None:
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            yield
            server.shutdown()
            thread.join()
        return
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        if kind != "bound":
            listener.listen()
        if kind == "hangs up":

            def hang_up() -> None:
                connection, _ = listener.accept()
                connection.recv(1000)
                connection.close()

            threading.Thread(target=hang_up, daemon=True).start()
        yield


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("http", "not Ollama's"),
        ("redirect", "HTTP 307"),
        ("error", "HTTP 503"),
        ("silent", "no answer within 3 s"),
        ("hangs up", "does not speak HTTP"),
    ],
)
def test_a_taken_port_is_an_error_and_never_a_reason_to_start(
    fake_ollama: Any, run_service: Callable[..., Endpoint], kind: str, words: str
) -> None:
    with _foreign(fake_ollama.port, kind), pytest.raises(OllamaError) as caught:
        run_service()
    assert caught.value.code == "OLLAMA_PROBE_FAILED"
    assert words in caught.value.message
    assert str(fake_ollama.port) in caught.value.message
    assert fake_ollama.starts() == 0


def test_a_port_that_is_taken_but_refuses_fails_with_the_services_own_words(
    fake_ollama: Any, run_service: Callable[..., Endpoint]
) -> None:
    with _foreign(fake_ollama.port, "bound"), pytest.raises(OllamaError) as caught:
        run_service()
    assert caught.value.code == "OLLAMA_START_FAILED"
    assert "address already in use" in caught.value.message


def test_a_service_that_is_there_already_is_used_and_never_ended(
    fake_ollama: Any, run_service: Callable[..., Endpoint]
) -> None:
    import subprocess

    environment = fake_ollama.environ | {"OLLAMA_HOST": f"127.0.0.1:{fake_ollama.port}"}
    standing = subprocess.Popen([fake_ollama.directory / "ollama", "serve"], env=environment)
    try:
        while not fake_ollama.is_listening():
            assert standing.poll() is None
        run_service()
        run_service()
        assert standing.poll() is None
        assert fake_ollama.starts() == 1
    finally:
        standing.terminate()
        standing.wait()

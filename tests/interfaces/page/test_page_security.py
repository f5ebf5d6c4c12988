"""Who may talk to the page's server, and what it never does."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

KEY = "X-Dsh-Memory-Session"


@pytest.fixture
def server(serve: Any) -> Any:
    return serve('[jev]\nmodel = "mine"\n')


def _call(
    server: Any,
    method: str,
    path: str,
    body: Any = None,
    *,
    host: str | None = None,
    origin: str | None = "own",
    **headers: str,
) -> tuple[int, dict[str, str], bytes]:
    address = server.origin.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=20)
    sent = {"Host": host or address}
    if origin is not None:
        sent["Origin"] = server.origin if origin == "own" else origin
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    try:
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def _session(server: Any) -> str:
    status, _, body = _call(server, "POST", "/api/session", {"token": server.token})
    assert status == 200
    return str(json.loads(body)["session"])


def _code(body: bytes) -> str:
    return str(json.loads(body)["error"]["code"])


def test_the_token_is_good_for_one_exchange(server: Any) -> None:
    key = _session(server)
    status, _, body = _call(server, "POST", "/api/session", {"token": server.token})
    assert (status, _code(body)) == (401, "PAGE_TOKEN")
    assert _call(server, "GET", "/api/form", **{KEY: key})[0] == 200


def test_a_wrong_token_does_not_use_the_right_one_up(server: Any) -> None:
    assert _call(server, "POST", "/api/session", {"token": "guess"})[0] == 401
    assert _call(server, "POST", "/api/session", {"token": "\u00e9"})[0] == 401
    _session(server)


def test_every_call_needs_the_session_key(server: Any) -> None:
    before = server.config.read_bytes()
    operations = [{"op": "set", "key": "jev.model", "value": "evil"}]
    draft = {"revision": "absent", "operations": operations}
    early: dict[str, str] = {}
    for headers in (early, {KEY: ""}, {KEY: "guess"}, {KEY: server.token}):
        for path in ("form", "revision", "status"):
            status, _, body = _call(server, "GET", f"/api/{path}", **headers)
            assert (status, _code(body)) == (401, "PAGE_SESSION")
            assert b"mine" not in body
        for path in ("save", "problems", "check/endpoint", "check/vault"):
            assert _call(server, "POST", f"/api/{path}", draft, **headers)[0] == 401
        if headers is early:
            _session(server)
    assert server.config.read_bytes() == before


def test_a_foreign_host_is_refused_even_for_static_files(server: Any) -> None:
    port = server.origin.rpartition(":")[2]
    for host in ("evil.example", f"rebound.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:80"):
        assert _call(server, "GET", "/", host=host, origin=None)[0] == 403


def test_localhost_is_the_same_server(server: Any) -> None:
    port = server.origin.rpartition(":")[2]
    own = f"localhost:{port}"
    assert _call(server, "GET", "/", host=own, origin=f"http://{own}")[0] == 200


def test_a_foreign_or_missing_origin_cannot_write(server: Any) -> None:
    key = _session(server)
    before = server.config.read_bytes()
    draft = {"revision": "absent", "operations": []}
    for origin in ("http://evil.example", "null", "https://127.0.0.1", None):
        status, _, body = _call(server, "POST", "/api/save", draft, origin=origin, **{KEY: key})
        assert (status, _code(body)) == (403, "PAGE_ORIGIN")
    assert server.config.read_bytes() == before


def test_a_foreign_origin_cannot_read_and_gets_no_cors_headers(server: Any) -> None:
    key = _session(server)
    for origin in ("http://evil.example", "null"):
        status, headers, _ = _call(server, "GET", "/api/form", origin=origin, **{KEY: key})
        assert status == 403
        assert not [name for name in headers if name.lower().startswith("access-control")]
    status, headers, _ = _call(server, "OPTIONS", "/api/form", origin="http://evil.example")
    assert status == 403
    status, headers, _ = _call(server, "GET", "/api/form", **{KEY: key})
    assert status == 200
    assert not [name for name in headers if name.lower().startswith("access-control")]


def test_cross_site_navigation_is_refused(server: Any) -> None:
    status, _, _ = _call(server, "GET", "/", origin=None, Sec_Fetch_Site="cross-site")
    assert status == 403


def test_every_answer_carries_the_protective_headers(server: Any) -> None:
    for path in ("/", "/page.js", "/missing", "/api/form"):
        _, headers, _ = _call(server, "GET", path)
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in {name.lower() for name in headers}


def test_only_the_pages_own_files_are_served(server: Any) -> None:
    for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/x/../../app.py", "//etc/passwd"):
        assert _call(server, "GET", path, origin=None)[0] == 404


def test_malformed_and_oversized_requests_are_refused_in_words(server: Any) -> None:
    key = _session(server)
    for body in (
        b"",
        b"not json",
        b"[]",
        b'{"revision": 1, "operations": []}',
        b'{"revision": "x", "operations": [{"op": "run", "key": "jev.model"}]}',
        b'{"revision": "x", "operations": [{"op": "set", "key": "a", "value": {"b": 1}}]}',
        b'{"revision": "x", "operations": [{"op": "set", "key": "a", "value": "\\ud800"}]}',
        b'{"revision": "x", "operations": [], "more": 1}',
    ):
        status, _, answer = _call(server, "POST", "/api/save", body, **{KEY: key})
        assert (status, _code(answer)) == (400, "PAGE_REQUEST"), body
    status, _, answer = _call(server, "POST", "/api/save", b"x" * 70_000, **{KEY: key})
    assert (status, _code(answer)) == (413, "PAGE_TOO_LONG")
    status, _, answer = _call(
        server, "POST", "/api/save", {"revision": "absent", "operations": []}, **{KEY: key}
    )
    assert (status, _code(answer)) == (409, "CONFIG_CONFLICT")


def test_unknown_keys_are_refused(server: Any) -> None:
    key = _session(server)
    revision = json.loads(_call(server, "GET", "/api/revision", **{KEY: key})[2])["revision"]
    before = server.config.read_bytes()
    for name in ("jev.api_key", "__class__.x", "jev", ""):
        draft = {
            "revision": revision,
            "operations": [{"op": "set", "key": name, "value": "x"}],
        }
        status, _, body = _call(server, "POST", "/api/save", draft, **{KEY: key})
        assert (status, _code(body)) == (422, "CONFIG_UNKNOWN_KEY")
    assert server.config.read_bytes() == before


def test_it_listens_on_loopback_only(server: Any) -> None:
    if not Path("/proc/net/tcp").exists():
        pytest.skip("needs /proc/net/tcp")
    port = int(server.origin.rpartition(":")[2])
    rows = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    listening = [row.split()[1] for row in rows.splitlines() if row.split()[3] == "0A"]
    assert [name for name in listening if name.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_server(server: Any, number: signal.Signals, status: int) -> None:
    _call(server, "GET", "/")
    assert server.stop(number) == status


def test_a_port_in_use_is_an_error_in_words(environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "dsh_memory.interfaces.cli",
                "config",
                "page",
                "--port",
                str(port),
            ],
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "PAGE_PORT" in done.stderr
    assert done.stdout == ""


def test_the_browser_is_opened_with_the_address(environ: dict[str, str], tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    os.mkfifo(opened)
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    program.chmod(0o700)
    process = subprocess.Popen(
        [sys.executable, "-m", "dsh_memory.interfaces.cli", "config", "page"],
        env=environ | {"BROWSER": str(program)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    address = opened.read_text()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == ""
    assert address.startswith("http://127.0.0.1:")
    assert address in err


def test_a_change_without_a_value_is_refused_like_any_wrong_one(server: Any) -> None:
    draft = {"revision": "x", "operations": [{"op": "set", "key": "jev.context_window"}]}
    headers = {KEY: _session(server)}
    for path in ("/api/problems", "/api/save"):
        status, _, body = _call(server, "POST", path, draft, **headers)
        answer = json.loads(body)
        assert status < 500
        if path == "/api/problems":
            assert answer["problems"]["jev.context_window"]["code"] == "CONFIG_INVALID"
        else:
            assert answer["error"]["code"] == "CONFIG_CONFLICT"

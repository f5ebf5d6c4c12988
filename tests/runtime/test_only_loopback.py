"""Nothing but the configured loopback address is ever connected to."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

USER = Path(__file__).with_name("service_user.py")
# Run before the user's program: tells every connection and every name that is looked up.
GUARD = """
import runpy, sys
def hook(event, args):
    if event == "socket.connect":
        print("CONNECT", args[1], flush=True)
    elif event == "socket.getaddrinfo" and args[0] is not None:
        print("LOOKUP", args[0], flush=True)
sys.addaudithook(hook)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
HOSTILE = dict.fromkeys(PROXIES, "http://127.0.0.1:9") | {
    "OLLAMA_HOST": "http://192.0.2.1:80",
    "OLLAMA_API_KEY": "secret",
    "NO_PROXY": "",
    "no_proxy": "",
}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_whole_managed_run_connects_to_the_configured_address_only(
    fake_ollama: Any, host: str
) -> None:
    if host == "[::1]":
        try:
            with socket.create_server(("::1", 0), family=socket.AF_INET6):
                pass
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
    fake_ollama.order(missing=True)
    base_url = f"http://{host}:{fake_ollama.port}"
    order = {"settings": fake_ollama.settings(base_url=base_url).model_dump(), "then": "exit"}
    done = subprocess.run(
        [sys.executable, "-c", GUARD, str(USER), json.dumps(order)],
        env=fake_ollama.environ | HOSTILE,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert "ready" in lines, done.stdout + done.stderr
    connected = {line for line in lines if line.startswith("CONNECT")}
    allowed = {
        "127.0.0.1": {("127.0.0.1", fake_ollama.port)},
        "localhost": {("127.0.0.1", fake_ollama.port), ("::1", fake_ollama.port, 0, 0)},
        "[::1]": {("::1", fake_ollama.port), ("::1", fake_ollama.port, 0, 0)},
    }[host]
    internet = {line for line in connected if "ollama-v" not in line}
    assert internet
    assert internet <= {f"CONNECT {address}" for address in allowed}
    looked_up = {line for line in lines if line.startswith("LOOKUP")}
    assert looked_up <= {"LOOKUP 127.0.0.1", "LOOKUP ::1"}
    # The service itself belongs to the address that was configured, and to nobody else.
    started = fake_ollama.log()[0]["environment"]["OLLAMA_HOST"]
    assert started in (f"127.0.0.1:{fake_ollama.port}", f"[::1]:{fake_ollama.port}")
    keys = {entry.get("authorization") for entry in fake_ollama.log()}
    assert "Bearer secret" not in keys


def test_a_managed_run_needs_no_network_but_loopback(fake_ollama: Any) -> None:
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("unshare is needed for a network namespace")
    # A fresh namespace has a loopback that is down and no route to anywhere.
    program = (
        "import fcntl, os, socket, struct, sys\n"
        "with socket.socket() as s:\n"
        "    fcntl.ioctl(s, 0x8914, struct.pack('16sH14x', b'lo', 0x41))\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
    )
    order = {"settings": fake_ollama.settings().model_dump(), "then": "exit"}
    done = subprocess.run(
        [
            unshare,
            "-n",
            "--map-current-user",
            "--keep-caps",
            sys.executable,
            "-c",
            program,
            str(USER),
            json.dumps(order),
        ],
        env=fake_ollama.environ | HOSTILE | {"HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
    )
    if "ready" not in done.stdout and ("unshare" in done.stderr or "ioctl" in done.stderr):
        pytest.skip(f"no network namespace possible here: {done.stderr.strip()}")
    assert "ready" in done.stdout.splitlines(), done.stdout + done.stderr

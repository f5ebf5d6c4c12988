"""The small rules of the managed mode: versions, windows, environment, import, meeting place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dsh_memory.runtime.ollama import rendezvous
from dsh_memory.runtime.ollama.environment import service_environment
from dsh_memory.runtime.ollama.errors import OllamaError
from dsh_memory.runtime.ollama.model import ModelFacts, declared_window, require_decision_model
from dsh_memory.runtime.ollama.probe import require_version


@pytest.mark.parametrize(
    "text", ["0.35.0", "0.35.0-rc1", "v0.40.12", "0.40.12+build", "1.0.0", "0.100.0"]
)
def test_new_enough_versions(text: str) -> None:
    require_version(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("0.34.99", "OLLAMA_VERSION_TOO_OLD"),
        ("0.9.0", "OLLAMA_VERSION_TOO_OLD"),
        ("0.0.1", "OLLAMA_VERSION_TOO_OLD"),
        ("0.0.0", "OLLAMA_VERSION_UNKNOWN"),
        ("0.0.0-dirty", "OLLAMA_VERSION_UNKNOWN"),
        ("", "OLLAMA_VERSION_UNKNOWN"),
        ("0.35", "OLLAMA_VERSION_UNKNOWN"),
        ("0.35.0.1", "OLLAMA_VERSION_UNKNOWN"),
        ("٠.٤٠.٠", "OLLAMA_VERSION_UNKNOWN"),
        ("latest\x1b[31m", "OLLAMA_VERSION_UNKNOWN"),
    ],
)
def test_other_versions_are_refused_with_a_remedy(text: str, code: str) -> None:
    with pytest.raises(OllamaError) as caught:
        require_version(text)
    assert caught.value.code == code
    assert "0.35.0" in caught.value.message
    assert "\x1b" not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("parameters", "window"),
    [
        (None, None),
        ("", None),
        ("stop x\nnum_ctx_other 5", None),
        ("num_ctx                        2048", 2048),
        ("a 1\n\n  num_ctx 1e+06  \nb 2", 1_000_000),
        ("num_ctx 1.048576e+06", 1_048_576),
        ("num_ctx 4096\nnum_ctx 2048", 2048),
    ],
)
def test_the_declared_window(parameters: str | None, window: int | None) -> None:
    assert declared_window(parameters) == window


@pytest.mark.parametrize(
    "value", ["", "x", "1.5", "-1", "0", "nan", "inf", "1e-3", "1e999", "0x800"]
)
def test_a_window_that_is_no_number_is_an_error_and_never_a_guess(value: str) -> None:
    with pytest.raises(ValueError):
        declared_window(f"num_ctx {value}")


def test_the_effective_window_is_the_smaller_one() -> None:
    facts = ModelFacts(context_window=8192, decides=True)
    assert require_decision_model("m", facts, cap=None) == 8192
    assert require_decision_model("m", facts, cap=4096) == 4096
    assert require_decision_model("m", facts, cap=100_000) == 8192


def test_only_listed_variables_reach_the_service() -> None:
    ambient = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "HTTPS_PROXY": "http://proxy:1",
        "HTTP_PROXY": "http://proxy:1",
        "ALL_PROXY": "http://proxy:1",
        "OLLAMA_HOST": "0.0.0.0",
        "OLLAMA_ORIGINS": "*",
        "OLLAMA_API_KEY": "secret",
        "OLLAMA_NO_CLOUD": "0",
        "OLLAMA_KEEP_ALIVE": "1h",
        "DSH_MEMORY_MCP_TOKEN": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "LD_PRELOAD": "/x.so",
    }
    assert service_environment(ambient, address="::1", port=99) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "HTTPS_PROXY": "http://proxy:1",
        "OLLAMA_KEEP_ALIVE": "1h",
        "OLLAMA_HOST": "[::1]:99",
        "OLLAMA_NO_CLOUD": "1",
    }


def test_the_client_package_imports_whatever_the_environment_says() -> None:
    program = (
        "import os\n"
        "before = dict(os.environ)\n"
        "from dsh_memory.runtime.ollama.client import connect, import_ollama\n"
        "client = connect(import_ollama(), 'http://127.0.0.1:9', silence=1)\n"
        "assert dict(os.environ) == before\n"
        "inner = client._client\n"
        "print(inner.base_url, inner.headers['authorization'], inner.follow_redirects,\n"
        "      inner.trust_env, [m for m in inner._mounts.values() if m is not None])\n"
    )
    hostile = {
        "HTTP_PROXY": "gopher://x",
        "https_proxy": "socks9://x",
        "ALL_PROXY": "://",
        "OLLAMA_HOST": "http://evil.example:99999",
        "OLLAMA_API_KEY": "schlüssel",
        "SSL_CERT_FILE": "/nonexistent",
        "SSL_CERT_DIR": "/nonexistent",
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | hostile,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "http://127.0.0.1:9",
        "Bearer",
        "ollama",
        "False",
        "False",
        "[]",
    ]


def _only(monkeypatch: pytest.MonkeyPatch, *directories: Path) -> None:
    monkeypatch.setattr(rendezvous, "_candidates", lambda: iter(directories))


def test_a_directory_that_others_could_use_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    open_one, link, file, good = (tmp_path / name for name in ("open", "link", "file", "good"))
    open_one.mkdir(mode=0o755)
    open_one.chmod(0o755)
    link.symlink_to(tmp_path)
    file.touch()
    _only(monkeypatch, open_one, link, file, good)
    monkeypatch.setattr(rendezvous, "_SOCKET_PATH_BYTES", 4000)
    assert rendezvous.find("127.0.0.1", 1) is None
    assert not good.exists()
    place = rendezvous.create("127.0.0.1", 1)
    assert place.directory == good
    assert good.stat().st_mode & 0o777 == 0o700
    assert rendezvous.find("127.0.0.1", 1) == place
    assert rendezvous.create("::1", 1).socket != place.socket
    _only(monkeypatch, open_one, link, file)
    with pytest.raises(OllamaError) as caught:
        rendezvous.create("127.0.0.1", 1)
    assert caught.value.code == "OLLAMA_RUNTIME_DIRECTORY"


def test_a_directory_whose_socket_path_would_be_too_long_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 100)
    _only(monkeypatch, long)
    with pytest.raises(OllamaError):
        rendezvous.create("127.0.0.1", 1)
    assert not long.exists()


def test_the_place_does_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    place = rendezvous.create("127.0.0.1", 1)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/elsewhere")
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    assert rendezvous.create("127.0.0.1", 1) == place

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class PageServer:
    """A running ``dsh-memory config page``."""

    process: subprocess.Popen[str]
    url: str
    config: Path
    home: Path
    environ: dict[str, str] = field(repr=False)

    @property
    def origin(self) -> str:
        return self.url.partition("/#")[0]

    @property
    def token(self) -> str:
        return self.url.partition("#token=")[2]

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another ``dsh-memory`` beside the page, with the same files."""
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "dsh_memory.interfaces.cli",
                *arguments,
                "--config",
                str(self.config),
            ],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home directory; nothing of the machine's own configuration is read."""
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("DSH_MEMORY_")
    }
    return inherited | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CONFIG_DIRS": str(home / "site"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "DSH_HOME": str(home / "dsh"),
    }


@pytest.fixture
def serve(home: Path, environ: dict[str, str]) -> Iterator[Callable[..., PageServer]]:
    """Start the page: ``serve(text_of_the_file, *options, env={}, config=path, prefix=[...])``."""
    running: list[subprocess.Popen[str]] = []

    def start(
        text: str | None = None,
        *options: str,
        env: dict[str, str] | None = None,
        config: Path | None = None,
        prefix: tuple[str, ...] = (),
    ) -> PageServer:
        path = config or home / "config" / "dsh-memory" / "config.toml"
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        variables = environ | (env or {})
        named = () if config is None else ("--config", str(config))
        process = subprocess.Popen(
            [
                *prefix,
                sys.executable,
                "-m",
                "dsh_memory.interfaces.cli",
                "config",
                "page",
                "--no-open",
                "--json",
                *named,
                *options,
            ],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        return PageServer(process, answer["url"], path, home, variables)

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium; module-scoped, because a running Playwright occupies the event loop."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed (apt-get install chromium)")
    with api.sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield instance
        instance.close()


@pytest.fixture
def open_tab(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a tab on an address and wait for the form; script errors fail the test."""
    contexts: list[Any] = []
    errors: list[str] = []

    def start(url: str, *, wait: str = ".field", **options: Any) -> Any:
        settings = {"locale": "en-US", "viewport": {"width": 1200, "height": 900}} | options
        context = browser.new_context(**settings)
        context.set_default_timeout(15_000)
        contexts.append(context)
        tab = context.new_page()
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto(url)
        tab.wait_for_selector(wait)
        return tab

    yield start
    for context in contexts:
        context.close()
    assert errors == []

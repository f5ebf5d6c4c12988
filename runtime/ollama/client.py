"""The `ollama` client, with its ambient defaults switched off."""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from dsh_memory.runtime.ollama.probe import no_tls

if TYPE_CHECKING:
    import ollama

CALL_SECONDS: Final = 30.0
_LOCK = threading.Lock()
# The package builds a default client when it is imported, and that client reads all of these; an
# unsupported proxy scheme, an odd host or a key that is no header text makes the import raise.
_AMBIENT: Final = ("OLLAMA_HOST", "OLLAMA_API_KEY", "SSL_CERT_FILE", "SSL_CERT_DIR")


def import_ollama() -> Any:
    """Import the package whatever the environment says. Blocks for up to a second."""
    with _LOCK, _without_ambient():
        return importlib.import_module("ollama")


def connect(package: Any, base_url: str, *, silence: float) -> ollama.AsyncClient:
    """Return a client that talks to `base_url` and to nothing else.

    Args:
        package: What `import_ollama` returned.
        base_url: A numeric loopback root.
        silence: Seconds that the server may stay silent within one answer.
    """
    import httpx

    client: ollama.AsyncClient = package.AsyncClient(
        host=base_url,
        # Any value keeps the client from sending the key of OLLAMA_API_KEY; the server ignores it.
        headers={"authorization": "Bearer ollama"},
        follow_redirects=False,
        trust_env=False,
        verify=no_tls(),
        timeout=httpx.Timeout(CALL_SECONDS, read=silence),
    )
    return client


@contextlib.contextmanager
def _without_ambient() -> Iterator[None]:
    names = [name for name in os.environ if name in _AMBIENT or name.lower().endswith("_proxy")]
    saved = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(saved)

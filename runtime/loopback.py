"""The loopback policy: which base URLs this program may ever connect to.

The rule (document 003): plain HTTP, the root path only, on exactly ``127.0.0.1``, ``localhost`` or
``[::1]``. It is checked on the raw text, because URL parsers disagree about the odd forms, and a
form that one parser reads as loopback may be another host for the next one.
"""

from __future__ import annotations

import re

from dsh_memory.runtime.errors import ConfigError

# One expression over the whole text: everything that is not matched here is refused, so there is no
# second parser whose opinion could differ.
_ROOT = re.compile(
    r"http://(?P<host>127\.0\.0\.1|localhost|\[::1\])(?::(?P<port>[0-9]{1,5}))?(?P<slash>/?)",
    re.IGNORECASE,
)

DEFAULT_PORT = 80
_HINT = (
    "Use the plain HTTP root of a server on this machine, for instance http://127.0.0.1:11434; "
    "only the hosts 127.0.0.1, localhost and [::1] are allowed."
)


def normalize_base_url(text: str) -> str:
    """Return ``http://host:port`` without a trailing slash for an allowed base URL.

    A missing port is 80 and stays left out. Nothing is trimmed, decoded or resolved.

    Raises:
        ConfigError: ``CONFIG_BASE_URL`` for any other text.
    """
    match = _ROOT.fullmatch(text) if text.isascii() else None
    if match is None:
        raise ConfigError(
            f"{_quote(text)} is no allowed base URL: {_reason(text)}.",
            code="CONFIG_BASE_URL",
            hint=_HINT,
        )
    host = match["host"].lower()
    port = match["port"]
    if port is None:
        return f"http://{host}"
    number = int(port)
    if not 1 <= number <= 65535:
        raise ConfigError(
            f"{_quote(text)} is no allowed base URL: port {port} is not within 1-65535.",
            code="CONFIG_BASE_URL",
            hint=_HINT,
        )
    return f"http://{host}" if number == DEFAULT_PORT else f"http://{host}:{number}"


def addresses(base_url: str) -> tuple[tuple[str, int], ...]:
    """Return the ``(address, port)`` pairs that a normalized base URL may be connected on.

    The name ``localhost`` is never resolved: it stands for 127.0.0.1, then ::1, whatever a hosts
    file or a name server says.
    """
    match = _ROOT.fullmatch(base_url)
    if match is None:
        raise ConfigError(
            f"{_quote(base_url)} is no allowed base URL: {_reason(base_url)}.",
            code="CONFIG_BASE_URL",
            hint=_HINT,
        )
    port = int(match["port"] or DEFAULT_PORT)
    host = match["host"].lower()
    if host == "localhost":
        return (("127.0.0.1", port), ("::1", port))
    return ((host.strip("[]"), port),)


def literal_url(address: str, port: int) -> str:
    """Return the base URL of a numeric loopback address."""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}" if port == DEFAULT_PORT else f"http://{host}:{port}"


def _quote(text: str) -> str:
    clipped = text if len(text) <= 80 else text[:79] + "…"
    return ascii(clipped) if not clipped.isprintable() else f'"{clipped}"'


def _reason(text: str) -> str:
    """Say in words what is wrong; only a message depends on it, never the decision."""
    lowered = text.lower()
    if not text.strip():
        return "it is empty"
    if text != text.strip():
        return "it starts or ends with white space"
    if not text.isascii() or not text.isprintable():
        return "it contains characters that do not belong into a URL"
    if lowered.startswith("https://"):
        return "https is not supported, a local server speaks plain http"
    if not lowered.startswith("http://"):
        return "it does not start with http://"
    rest = text[len("http://") :]
    authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    if "@" in authority:
        return "it carries credentials"
    if "?" in rest or "#" in rest:
        return "it carries a query or a fragment"
    tail = rest[len(authority) :]
    if tail not in ("", "/"):
        return "it has a path; only the root is allowed"
    host, _, port = (
        authority.rpartition(":")
        if re.search(r":[^\]]*$", authority)
        else (
            authority,
            "",
            "",
        )
    )
    if host.lower() in ("127.0.0.1", "localhost", "[::1]"):
        return f'"{port}" is no port number'
    return f'"{host or authority}" is not one of 127.0.0.1, localhost, [::1]'

"""Which base URLs are allowed."""

from __future__ import annotations

import pytest
from dsh_memory.runtime.errors import ConfigError
from dsh_memory.runtime.loopback import addresses, literal_url, normalize_base_url
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:11434/", "http://127.0.0.1:11434"),
        ("http://localhost", "http://localhost"),
        ("http://localhost:80/", "http://localhost"),
        ("HTTP://LOCALHOST:8080", "http://localhost:8080"),
        ("http://[::1]:11434/", "http://[::1]:11434"),
        ("http://127.0.0.1:65535", "http://127.0.0.1:65535"),
    ],
)
def test_allowed_roots_are_normalized(text: str, normalized: str) -> None:
    assert normalize_base_url(text) == normalized
    assert normalize_base_url(normalized) == normalized


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " http://127.0.0.1",
        "http://127.0.0.1 ",
        "http://127.0.0.1\n",
        "http://127.0.0.1\t:80",
        "\x00http://127.0.0.1",
        "127.0.0.1:11434",
        "//127.0.0.1",
        "http:127.0.0.1",
        "http:/127.0.0.1",
        "http:///127.0.0.1",
        "http:\\\\127.0.0.1",
        "https://127.0.0.1:11434",
        "ftp://127.0.0.1",
        "unix:///run/ollama.sock",
        "http://127.0.0.1:11434@evil.example/",
        "http://user@127.0.0.1",
        "http://user:word@127.0.0.1",
        "http://@127.0.0.1",
        "http://:@127.0.0.1",
        "http://127.0.0.1.evil.example",
        "http://evil.example",
        "http://evil.example\\@127.0.0.1",
        "http://127.0.0.1\\@evil.example",
        "http://0x7f.1",
        "http://0x7f000001",
        "http://2130706433",
        "http://127.1",
        "http://127.0.1",
        "http://127.0.0.2",
        "http://0.0.0.0",
        "http://0",
        "http://0177.0.0.1",
        "http://127.000.000.001",
        "http://127.0.0.1.",
        "http://localhost.",
        "http://localhost.localdomain",
        "http://%6cocalhost",
        "http://127.0.0.1%2eevil.example",
        "http://[::ffff:127.0.0.1]",
        "http://[::]",
        "http://[0:0:0:0:0:0:0:1]",
        "http://[::1%lo]",
        "http://[::1%25lo]",
        "http://::1",
        "http://[::1",
        "http://127。0。0。1",
        "http://１２７.0.0.1",
        "http://ⓛocalhost",
        "http://loca\u00adlhost",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://127.0.0.1:",
        "http://127.0.0.1:-1",
        "http://127.0.0.1:+80",
        "http://127.0.0.1:8 0",
        "http://127.0.0.1:٨٠",
        "http://127.0.0.1:80:80",
        "http://127.0.0.1/?",
        "http://127.0.0.1?",
        "http://127.0.0.1/#",
        "http://127.0.0.1#",
        "http://127.0.0.1//",
        "http://127.0.0.1/v1",
        "http://127.0.0.1/.",
        "http://127.0.0.1/;",
    ],
)
def test_everything_else_is_refused_with_the_text_and_a_remedy(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        normalize_base_url(text)
    assert caught.value.code == "CONFIG_BASE_URL"
    assert "http://127.0.0.1:11434" in (caught.value.hint or "")
    assert "\n" not in caught.value.message


@given(st.text(max_size=40))
def test_no_text_around_an_allowed_root_is_accepted(text: str) -> None:
    for candidate in (text, f"http://{text}", f"http://127.0.0.1{text}", f"{text}http://[::1]"):
        try:
            result = normalize_base_url(candidate)
        except ConfigError:
            continue
        assert {address for address, _ in addresses(result)} <= {"127.0.0.1", "::1"}


def test_localhost_stands_for_the_two_loopback_addresses_and_is_not_looked_up() -> None:
    assert addresses("http://localhost:99") == (("127.0.0.1", 99), ("::1", 99))
    assert addresses("http://[::1]") == (("::1", 80),)
    assert literal_url("::1", 80) == "http://[::1]"
    assert literal_url("127.0.0.1", 8080) == "http://127.0.0.1:8080"

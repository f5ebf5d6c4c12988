"""Which sessions a store offers: the listing rules, from file names and headers alone.

Pure functions: the caller says what each log's header is (read now, or remembered for an unchanged
revision). Bodies play no role here; a session with a corrupt body is listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dsh_memory.sessionquery.disk.discovery import FoundLog, StoreFault
from dsh_memory.sessionquery.disk.header import FormatStatus, HeaderProblem, format_status_of
from dsh_memory.sessionquery.disk.names import (
    CURRENT_GENERATION,
    project_directory,
    session_directory,
)
from dsh_memory.sessionquery.errors import (
    CORRUPT_SESSION,
    INVALID_SURFACE,
    PERSISTENCE_FAILED,
    SESSION_NOT_FOUND,
    SessionQueryError,
)
from dsh_memory.sessionquery.model.search import UnreadableSession
from dsh_memory.sessionquery.model.sessions import SessionHeader

UnreadablePolicy = Literal["fail", "skip"]
HeaderOutcome = SessionHeader | HeaderProblem

_NAMED_NEWER = 10
"""How many logs of newer formats a result names one by one."""

SKIP_HINT = (
    "Repair or move the file away, or leave such sessions out: "
    "dsh-memory config set store.unreadable skip"
)


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session that the store lists."""

    found: FoundLog
    header: SessionHeader

    @property
    def format_status(self) -> FormatStatus:
        return format_status_of(self.found.revision.generation)


@dataclass(frozen=True, slots=True)
class NewerLog:
    """A log that a newer DSH wrote, in a format that this program does not know.

    Attributes:
        path: The file, relative to the sessions directory.
        generation: Its format generation.
    """

    path: str
    generation: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """The sessions of a store.

    Attributes:
        sessions: By session id, in order of project and directory.
        unreadable: What was left out because the policy is ``skip``.
        newer: What is not listed because its format is too new.
    """

    sessions: Mapping[str, ListedSession]
    unreadable: tuple[UnreadableSession, ...] = ()
    newer: tuple[NewerLog, ...] = ()


def misplaced(found: FoundLog, header: SessionHeader) -> str | None:
    """Return what is wrong when a log does not lie where its header says, else None."""
    project, directory = project_directory(header.cwd), session_directory(header.id)
    if (project, directory) == (found.project, found.directory):
        return None
    return f"its header (id {header.id!r}, cwd {header.cwd!r}) belongs into {project}/{directory}"


def classify(
    logs: Iterable[tuple[FoundLog, HeaderOutcome]],
    faults: Iterable[StoreFault],
    *,
    policy: UnreadablePolicy,
) -> Corpus:
    """Decide which sessions are listed.

    Args:
        logs: Every discovered log with its header or the reason why it has none. Headers of the
            kinds ``absent`` and ``corrupt`` leave a log out silently, ``newer`` leaves it out
            and names it.
        faults: Store-wide faults of the directories.
        policy: ``fail``: the first fault ends every operation over the store, as in the original.
            ``skip``: what is faulty is left out and named.

    Raises:
        SessionQueryError: ``PERSISTENCE_FAILED`` under the policy ``fail``, naming the file.
    """
    problems = [
        UnreadableSession(path=fault.path, code=PERSISTENCE_FAILED, reason=fault.reason)
        for fault in faults
    ]
    newer: list[NewerLog] = []
    by_id: dict[str, list[ListedSession]] = {}
    for found, header in logs:
        if isinstance(header, HeaderProblem):
            if header.kind == "fatal":
                problems.append(_problem(found, header.reason))
            elif header.kind == "newer":
                newer.append(NewerLog(found.relative, found.revision.generation))
            continue
        wrong = misplaced(found, header)
        if wrong is not None:
            problems.append(_problem(found, wrong, header.id))
            continue
        by_id.setdefault(header.id, []).append(ListedSession(found, header))
    sessions: dict[str, ListedSession] = {}
    for session_id, candidates in by_id.items():
        if len(candidates) == 1:
            sessions[session_id] = candidates[0]
            continue
        places = ", ".join(candidate.found.project for candidate in candidates)
        problems.extend(
            _problem(candidate.found, f"its id is in several projects ({places})", session_id)
            for candidate in candidates
        )
    if problems and policy == "fail":
        raise store_failure(problems[0])
    return Corpus(sessions, tuple(problems), tuple(newer))


def newer_notices(newer: Sequence[NewerLog]) -> tuple[str, ...]:
    """Say which logs were left out because their format is too new, and what to do."""
    named = [
        f"{log.path} has log format {log.generation}; this program reads up to "
        f"{CURRENT_GENERATION}. Its session is left out: update dsh-memory to include it."
        for log in newer[:_NAMED_NEWER]
    ]
    rest = len(newer) - len(named)
    if rest > 0:
        named.append(f"{rest} more sessions have a log format above {CURRENT_GENERATION}.")
    return tuple(named)


def store_failure(problem: UnreadableSession) -> SessionQueryError:
    """Return the error that ends operations over a whole store because of one file."""
    return SessionQueryError(
        f"The session store cannot be read: {problem.path}: {problem.reason}.",
        code=INVALID_SURFACE if problem.code == INVALID_SURFACE else PERSISTENCE_FAILED,
        hint=SKIP_HINT,
    )


def header_failure(session_id: str, path: str, problem: HeaderProblem) -> SessionQueryError:
    """Return the error of observing a session whose log has no usable header."""
    if problem.kind == "absent":
        return not_found(session_id)
    code = CORRUPT_SESSION if problem.kind == "corrupt" else PERSISTENCE_FAILED
    return SessionQueryError(f"Session {session_id!r}: {path}: {problem.reason}.", code=code)


def not_found(session_id: object) -> SessionQueryError:
    text = session_id if isinstance(session_id, str) else json.dumps(session_id, default=str)
    shown = json.dumps(text, ensure_ascii=False)
    return SessionQueryError(
        f"session {shown} not found",
        code=SESSION_NOT_FOUND,
        hint="List the sessions with: dsh-memory sessions",
    )


def _problem(found: FoundLog, reason: str, session_id: str | None = None) -> UnreadableSession:
    return UnreadableSession(found.relative, PERSISTENCE_FAILED, reason, session_id)

"""The persisted sessions of one DSH home, with what is remembered between requests.

Remembered are directory listings and headers of unchanged logs, never bodies. All methods are
synchronous and may be called from several threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.discovery import (
    RECENT_NS,
    Discovery,
    FoundLog,
    LogRevision,
    discover,
    find_session,
)
from dsh_memory.sessionquery.disk.header import HeaderProblem
from dsh_memory.sessionquery.disk.header_reader import read_header
from dsh_memory.sessionquery.disk.names import LONGEST_NAME, SESSIONS_FOLDER, session_directory
from dsh_memory.sessionquery.disk.writer_locks import locked_logs
from dsh_memory.sessionquery.errors import PERSISTENCE_FAILED, SessionQueryError
from dsh_memory.sessionquery.model.search import UnreadableSession
from dsh_memory.sessionquery.store.listing import (
    Corpus,
    HeaderOutcome,
    ListedSession,
    UnreadablePolicy,
    classify,
    header_failure,
    misplaced,
    not_found,
    store_failure,
)
from dsh_memory.sessionquery.store.subagents import children_of, subagents_by_parent

if TYPE_CHECKING:
    from dsh_memory.sessionquery.log.reader import EventStream
    from dsh_memory.sessionquery.model.children import Child


@dataclass(frozen=True, slots=True)
class _KnownHeader:
    revision: LogRevision
    outcome: HeaderOutcome


class SessionStore:
    """Reads the store below ``home/sessions``.

    Args:
        home: The DSH home.
        policy: What an unreadable part of the store means, see `corpus.classify`.
    """

    def __init__(self, home: str | Path, *, policy: UnreadablePolicy = "fail") -> None:
        self.root = Path(home) / SESSIONS_FOLDER
        self._policy = policy
        self._lock = threading.Lock()
        self._discovery: Discovery | None = None
        # The listings of the last look at one session; each look refreshes them.
        self._observed: Discovery | None = None
        self._headers: dict[str, _KnownHeader] = {}

    def discover(self, *, signal: AbortSignal) -> Discovery:
        """Look at the directories again; see `discovery.discover`."""
        with self._lock:
            found = discover(self.root, self._discovery, signal=signal)
            self._discovery = found
            return found

    def corpus(self, *, signal: AbortSignal, policy: UnreadablePolicy | None = None) -> Corpus:
        """Return the sessions that the store lists now.

        Args:
            signal: Polled once a log.
            policy: Instead of the store's own.

        Raises:
            SessionQueryError: ``PERSISTENCE_FAILED`` under the policy ``fail``, ``ABORTED``.
        """
        found = self.discover(signal=signal)
        headers: dict[str, _KnownHeader] = {}
        pairs: list[tuple[FoundLog, HeaderOutcome]] = []
        for log in found.logs:
            signal.raise_if_aborted()
            outcome = self._header(log, headers)
            if outcome is not None:
                pairs.append((log, outcome))
        self._headers = headers
        return classify(pairs, found.faults, policy=policy or self._policy)

    def unusable_headers(self, *, signal: AbortSignal) -> tuple[UnreadableSession, ...]:
        """Name the logs that are silently absent because of their header."""
        out: list[UnreadableSession] = []
        for log in self.discover(signal=signal).logs:
            outcome = self._header(log, self._headers)
            if isinstance(outcome, HeaderProblem) and outcome.kind != "fatal":
                out.append(UnreadableSession(log.relative, PERSISTENCE_FAILED, outcome.reason))
        return tuple(out)

    def listed(self, session_id: object, *, signal: AbortSignal) -> tuple[Corpus, ListedSession]:
        """Return a session of the corpus.

        Raises:
            SessionQueryError: ``SESSION_NOT_FOUND``, ``PERSISTENCE_FAILED``, ``ABORTED``.
        """
        corpus = self.corpus(signal=signal)
        session = corpus.sessions.get(session_id) if isinstance(session_id, str) else None
        if session is not None:
            return corpus, session
        for problem in corpus.unreadable:
            if problem.session_id is not None and problem.session_id == session_id:
                raise store_failure(problem)
        raise not_found(session_id)

    def observed(self, session_id: object, *, signal: AbortSignal) -> ListedSession:
        """Find one session by its directory; the rest of the store may be unreadable.

        Raises:
            SessionQueryError: ``SESSION_NOT_FOUND``, ``CORRUPT_SESSION`` for a zstd log whose
                complete first frame is no header, ``PERSISTENCE_FAILED``, ``ABORTED``.
        """
        if not isinstance(session_id, (str, list)) and session_id is not None:
            raise not_found(session_id)
        name = session_id if isinstance(session_id, str) else ""
        directory = session_directory(name)
        with self._lock:
            known = self._observed or self._discovery
        found = find_session(self.root, known, directory, signal=signal)
        with self._lock:
            self._observed = found
        if found.faults and self._policy == "fail":
            fault = found.faults[0]
            raise store_failure(UnreadableSession(fault.path, PERSISTENCE_FAILED, fault.reason))
        if not found.logs:
            has_projects = "" in found.directories and found.directories[""].names
            if has_projects and not 0 < len(directory) <= LONGEST_NAME:
                raise SessionQueryError(
                    f"A session directory cannot be named {directory!r}.", code=PERSISTENCE_FAILED
                )
            raise not_found(session_id)
        if len(found.logs) > 1:
            projects = ", ".join(log.project for log in found.logs)
            reason = f"session {name!r} is in several projects ({projects})"
            raise store_failure(
                UnreadableSession(found.logs[0].relative, PERSISTENCE_FAILED, reason, name)
            )
        log = found.logs[0]
        header = read_header(self.root, log)
        if isinstance(header, HeaderProblem):
            raise header_failure(name, str(log.path(self.root)), header)
        wrong = misplaced(log, header)
        if wrong is not None:
            raise store_failure(
                UnreadableSession(log.relative, PERSISTENCE_FAILED, wrong, header.id)
            )
        return ListedSession(log, header)

    def stream(
        self, session: ListedSession, corpus: Corpus | None, *, signal: AbortSignal
    ) -> EventStream:
        """Open the events of a session.

        Args:
            session: The session.
            corpus: Where its subagents are looked up, needed only for logs of older generations;
                None reads the corpus when it is needed.
            signal: Polled while reading.
        """

        from dsh_memory.sessionquery.log.reader import EventStream

        def children(session_id: str) -> Iterable[Child]:
            sessions = (corpus or self.corpus(signal=signal)).sessions.values()
            return children_of(self.root, subagents_by_parent(sessions), signal=signal)(session_id)

        return EventStream(self.root, session.found, signal=signal, children=children)

    def being_written(self, corpus: Corpus) -> frozenset[str]:
        """Return the ids of the sessions whose log another process is writing to."""
        locked = locked_logs(self.root, (session.found for session in corpus.sessions.values()))
        return frozenset(
            session.header.id
            for session in corpus.sessions.values()
            if (session.found.project, session.found.directory) in locked
        )

    def _header(self, log: FoundLog, remember: dict[str, _KnownHeader]) -> HeaderOutcome | None:
        known = self._headers.get(log.relative)
        if known is None or known.revision != log.revision:
            now = time.time_ns()
            try:
                outcome = read_header(self.root, log)
            except SessionQueryError as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    return None
                outcome = HeaderProblem("fatal", error.message.rstrip("."))
            known = _KnownHeader(log.revision, outcome)
            if now - max(log.revision.mtime_ns, log.revision.ctime_ns) <= RECENT_NS:
                return outcome
        remember[log.relative] = known
        return known.outcome

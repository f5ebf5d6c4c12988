"""One process's hold on an index: opened late, kept in step with store and file, replaced if bad.

Whatever happens to the file, a search gets a complete answer: a damaged file is rebuilt, and where
no file can be written, an index in memory takes its place and a diagnostic says so.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.discovery import Discovery, FoundLog, StoreFault, discover
from dsh_memory.sessionquery.errors import ABORTED, INDEX_FAILED, SessionQueryError
from dsh_memory.sessionquery.index.build.sync import apply_plan, plan_sync
from dsh_memory.sessionquery.index.build.writer import IndexWriter, begin_writing
from dsh_memory.sessionquery.index.file.catalog import (
    Catalog,
    IndexedLog,
    change_number,
    load_catalog,
    load_discovery,
    save_directories,
)
from dsh_memory.sessionquery.index.file.database import (
    BrokenIndexError,
    IndexDatabase,
    open_database,
    open_memory,
    replace_broken,
    translate,
)
from dsh_memory.sessionquery.index.file.file_locks import UnusableIndexError
from dsh_memory.sessionquery.index.file.location import locate_index
from dsh_memory.sessionquery.model.options import EngineOptions
from dsh_memory.sessionquery.model.search import UnreadableSession
from dsh_memory.sessionquery.store.listing import (
    Corpus,
    ListedSession,
    NewerLog,
    classify,
    newer_notices,
    store_failure,
)
from dsh_memory.sessionquery.store.store import SessionStore

T = TypeVar("T")

_ATTEMPTS: Final = 4
_NO_DISCOVERY: Final = Discovery((), (), {})


@dataclass(frozen=True, slots=True)
class SearchableSession:
    """A session of the corpus with its entry in the index."""

    listed: ListedSession
    log: IndexedLog


@dataclass(frozen=True, slots=True)
class IndexView:
    """The index in one reading transaction, in step with the store.

    Attributes:
        connection: Inside the transaction.
        sessions: Every searchable session by id.
        unreadable: What was left out because the policy is ``skip``.
    """

    connection: sqlite3.Connection
    sessions: dict[str, SearchableSession]
    unreadable: tuple[UnreadableSession, ...]


class IndexKeeper:
    """Opens, synchronizes and repairs one home's index. One thread at a time.

    Args:
        options: Of the engine.
        store: The home's store; its directories are looked at, its state is not used.
    """

    def __init__(self, options: EngineOptions, store: SessionStore) -> None:
        self._options = options
        self._root = store.root
        self._location = locate_index(options.home, options.index_path)
        self._database: IndexDatabase | None = None
        self._catalog: Catalog | None = None
        self._discovery: Discovery | None = None
        self._saved = _NO_DISCOVERY
        self._sessions: dict[str, SearchableSession] = {}
        self._unreadable: tuple[UnreadableSession, ...] = ()
        self._newer: tuple[NewerLog, ...] = ()
        self._classified: tuple[int, tuple[StoreFault, ...]] | None = None
        self._settled: tuple[int, tuple[FoundLog, ...]] | None = None
        self._fallback: str | None = None

    @property
    def diagnostics(self) -> tuple[str, ...]:
        """What the user should know about where the index is and what it cannot hold."""
        return ((self._fallback,) if self._fallback else ()) + newer_notices(self._newer)

    def open(self) -> None:
        """Open the index without looking at the store.

        Raises:
            SessionQueryError: ``INDEX_FAILED``.
        """
        self._recovering(lambda: None)

    def use(self, work: Callable[[IndexView], T], *, signal: AbortSignal) -> T:
        """Synchronize, then run `work` in a reading transaction.

        Raises:
            SessionQueryError: ``PERSISTENCE_FAILED`` for an unreadable store (policy ``fail``),
                ``INDEX_FAILED``, ``ABORTED``, or what `work` raises.
        """

        def attempt() -> T:
            database = self._synchronize(signal)
            with self._interruptible(database, signal):
                return self._read(database, work, signal)

        return self._recovering(attempt)

    def close(self) -> None:
        database, self._database = self._database, None
        self._forget()
        if database is not None:
            database.close()

    def _recovering(self, attempt: Callable[[], T]) -> T:
        last: Exception | None = None
        for _ in range(_ATTEMPTS):
            try:
                try:
                    self._opened()
                    return attempt()
                except sqlite3.Error as error:
                    code = getattr(error, "sqlite_errorcode", None)
                    if code == sqlite3.SQLITE_INTERRUPT:
                        raise SessionQueryError(
                            "The query was cancelled.", code=ABORTED, retryable=True
                        ) from error
                    meaning = translate(error)
                    if meaning is error:
                        raise
                    raise meaning from error
            except BrokenIndexError as error:
                last = error
                self._replace()
            except UnusableIndexError as error:
                last = error
                self._fall_back(error)
        raise SessionQueryError(
            f"The search index {self._location.path} cannot be used: {last}.",
            code=INDEX_FAILED,
            hint="Delete it, it is rebuilt from the logs; or configure another index.path.",
        ) from last

    def _opened(self) -> IndexDatabase:
        if self._database is None:
            self._forget()
            self._database = (
                open_memory(self._location) if self._fallback else open_database(self._location)
            )
        return self._database

    def _replace(self) -> None:
        database, self._database = self._database, None
        self._forget()
        if database is None:
            if self._location.path is not None:
                with contextlib.suppress(UnusableIndexError, OSError):
                    replace_broken(self._location, self._location.path.stat().st_ino)
            return
        database.abandon()
        if database.path is not None:
            try:
                replace_broken(self._location, database.inode)
            except UnusableIndexError as error:
                self._fall_back(error)

    def _fall_back(self, error: UnusableIndexError) -> None:
        database, self._database = self._database, None
        self._forget()
        if database is not None:
            database.abandon()
        self._fallback = (
            f"The search index {self._location.path} cannot be used ({error}); this process "
            "searches with an index in memory."
        )

    def _forget(self) -> None:
        self._catalog = None
        self._classified = None
        self._settled = None
        self._saved = _NO_DISCOVERY
        self._discovery = None

    @contextlib.contextmanager
    def _interruptible(self, database: IndexDatabase, signal: AbortSignal) -> Iterator[None]:
        forget = signal.on_abort(database.connection.interrupt)
        try:
            signal.raise_if_aborted()
            yield
        finally:
            forget()

    def _synchronize(self, signal: AbortSignal) -> IndexDatabase:
        signal.raise_if_aborted()
        database = self._opened()
        database.check_unchanged(signal)
        catalog = self._current_catalog(database)
        discovery = discover(self._root, self._discovery, signal=signal)
        if self._settled == (catalog.change, discovery.logs) and not discovery.listed:
            self._discovery = discovery
            return database
        plan = plan_sync(self._root, discovery, catalog, signal=signal)
        if not plan.empty:
            with database.writing(signal) as finish:
                # Another process may have done the same work while this one waited.
                catalog = self._current_catalog(database)
                plan = plan_sync(self._root, discovery, catalog, signal=signal)
                writer = self._writer(database)
                apply_plan(
                    self._root,
                    plan,
                    discovery,
                    catalog,
                    self._saved.directories,
                    writer,
                    signal=signal,
                )
                finish(purged=writer.purged)
            self._saved = discovery
        elif plan.confirmed or discovery.listed:
            self._note_in_passing(database, plan.confirmed, discovery)
        self._discovery = discovery
        self._settled = (catalog.change, discovery.logs) if plan.settled else None
        return database

    def _note_in_passing(
        self, database: IndexDatabase, confirmed: tuple[IndexedLog, ...], discovery: Discovery
    ) -> None:
        """Save what spares later searches work, unless somebody else is writing."""
        with database.writing_if_free() as free:
            if not free or change_number(database.connection) != self._change:
                return
            writer = self._writer(database)
            for log in confirmed:
                writer.save_row(log)
            writer.run_in_transaction(
                partial(
                    save_directories,
                    directories=discovery.directories,
                    known=self._saved.directories,
                )
            )
            writer.commit()
            self._saved = discovery

    @property
    def _change(self) -> int:
        return self._catalog.change if self._catalog is not None else -1

    def _writer(self, database: IndexDatabase) -> IndexWriter:
        return IndexWriter(database.connection, begin=partial(begin_writing, database.connection))

    def _current_catalog(self, database: IndexDatabase) -> Catalog:
        connection = database.connection
        if self._catalog is not None and change_number(connection) == self._catalog.change:
            return self._catalog
        connection.execute("BEGIN")
        try:
            self._catalog = load_catalog(connection)
            if self._discovery is None:
                self._discovery = load_discovery(connection, self._catalog)
                self._saved = self._discovery or _NO_DISCOVERY
        finally:
            connection.execute("COMMIT")
        return self._catalog

    def _read(
        self, database: IndexDatabase, work: Callable[[IndexView], T], signal: AbortSignal
    ) -> T:
        connection = database.connection
        while True:
            catalog = self._current_catalog(database)
            self._classify(catalog)
            connection.execute("BEGIN")
            try:
                if change_number(connection) == catalog.change:
                    return work(IndexView(connection, self._sessions, self._unreadable))
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            # Another process wrote in between; its state may be newer than our look at the store.
            database = self._synchronize(signal)

    def _classify(self, catalog: Catalog) -> None:
        assert self._discovery is not None
        key = (catalog.change, self._discovery.faults)
        if self._classified == key:
            return
        policy = self._options.unreadable
        pairs = [
            (found, catalog.logs[number].header)
            for found in self._discovery.logs
            if (number := catalog.places.get((found.project, found.directory))) is not None
        ]
        corpus = classify(pairs, self._discovery.faults, policy=policy)
        self._newer = corpus.newer
        self._sessions, self._unreadable = _searchable(corpus, catalog, policy)
        self._classified = key


def _searchable(
    corpus: Corpus, catalog: Catalog, policy: str
) -> tuple[dict[str, SearchableSession], tuple[UnreadableSession, ...]]:
    sessions: dict[str, SearchableSession] = {}
    unreadable = list(corpus.unreadable)
    for session_id, listed in corpus.sessions.items():
        log = catalog.logs[catalog.places[listed.found.project, listed.found.directory]]
        if log.failure is None:
            sessions[session_id] = SearchableSession(listed, log)
            continue
        problem = UnreadableSession(
            listed.found.relative, log.failure.code, log.failure.reason, session_id
        )
        if policy == "fail":
            raise store_failure(problem)
        unreadable.append(problem)
    return sessions, tuple(unreadable)

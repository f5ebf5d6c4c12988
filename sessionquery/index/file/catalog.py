"""What the index remembers of each log and each directory, apart from the documents."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from dsh_memory.sessionquery.disk.discovery import (
    RECENT_NS,
    DirectoryState,
    Discovery,
    FoundLog,
    LogRevision,
)
from dsh_memory.sessionquery.disk.header import HeaderProblem, ProblemKind
from dsh_memory.sessionquery.disk.names import Encoding
from dsh_memory.sessionquery.model.sessions import SessionHeader
from dsh_memory.sessionquery.store.listing import HeaderOutcome

Place = tuple[str, str]
"""Project and directory of a log."""

_CHUNK: Final = 1 << 20
_COLUMNS: Final = (
    "id, project, directory, name, encoding, generation, size, mtime_ns, ctime_ns, inode,"
    " read_at_ns, bytes_hash, family, session_id, created_at, is_seeded, delegation_depth, cwd,"
    " parent_session, origin, agent_preset, problem, reason, failure_code, failure,"
    " row_count, oldest, newest, content"
)


@dataclass(frozen=True, slots=True)
class LogFailure:
    """Why the body of a log cannot be searched."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class IndexedLog:
    """One log as the index has it.

    Attributes:
        id: Number in the index.
        found: Where it lies, with the revision that was read.
        read_at_ns: Wall clock just before it was read.
        bytes_hash: Hash of the file, kept while its times are too close to the reading to be
            trusted.
        family: Hash of the revisions of other logs on which its events depend.
        header: Its header, or the reason why it has none.
        failure: Why its body is not in the index, None if it is.
        row_count: Rows on disk.
        oldest, newest: Smallest and largest row time (ms); None without rows.
        content: Digest of all rows on disk (`cursors.session_digest`).
    """

    id: int
    found: FoundLog
    read_at_ns: int
    bytes_hash: bytes | None
    family: bytes | None
    header: HeaderOutcome
    failure: LogFailure | None
    row_count: int
    oldest: int | None
    newest: int | None
    content: bytes

    @property
    def place(self) -> Place:
        return self.found.project, self.found.directory

    @property
    def settled(self) -> bool:
        """Whether an unchanged revision proves unchanged bytes."""
        revision = self.found.revision
        return self.read_at_ns - max(revision.mtime_ns, revision.ctime_ns) > RECENT_NS

    @property
    def searchable(self) -> bool:
        return self.failure is None and isinstance(self.header, SessionHeader)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every log of the index in one state of it.

    Attributes:
        change: Counts the states of the index file.
        logs: By number.
        places: Their numbers by place.
    """

    change: int
    logs: Mapping[int, IndexedLog]
    places: Mapping[Place, int]


def load_catalog(connection: sqlite3.Connection) -> Catalog:
    """Read the catalog, inside the caller's transaction."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM logs").fetchall()
    logs = {row[0]: _from_row(row) for row in rows}
    places = {log.place: number for number, log in logs.items()}
    return Catalog(change_number(connection), logs, places)


def change_number(connection: sqlite3.Connection) -> int:
    """Return the number of the index's current state."""
    (number,) = connection.execute("SELECT value FROM meta WHERE key = 'change'").fetchone()
    return cast(int, number)


def save_log(connection: sqlite3.Connection, log: IndexedLog) -> None:
    """Insert or replace a log's row."""
    revision = log.found.revision
    header, problem = (
        (log.header, None) if isinstance(log.header, SessionHeader) else (None, log.header)
    )
    values: tuple[Any, ...] = (
        log.id,
        _column(log.found.project),
        _column(log.found.directory),
        log.found.name,
        log.found.encoding,
        revision.generation,
        revision.size,
        revision.mtime_ns,
        revision.ctime_ns,
        revision.inode,
        log.read_at_ns,
        log.bytes_hash,
        log.family,
        header and _pack(header.id),
        header and header.created_at,
        header and header.is_seeded,
        header and header.delegation_depth,
        header and _pack(header.cwd),
        header and _pack(header.parent_session),
        header and header.origin,
        header and _pack(header.agent_preset),
        problem and problem.kind,
        problem and _pack(problem.reason),
        log.failure and log.failure.code,
        log.failure and _pack(log.failure.reason),
        log.row_count,
        log.oldest,
        log.newest,
        log.content,
    )
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT OR REPLACE INTO logs({_COLUMNS}) VALUES({marks})", values)


def _from_row(row: tuple[Any, ...]) -> IndexedLog:
    found = FoundLog(
        _path(row[1]), _path(row[2]), row[3], cast(Encoding, row[4]), LogRevision(*row[5:10])
    )
    header: HeaderOutcome
    if row[21] is None:
        header = SessionHeader(
            id=_unpack(row[13]),
            created_at=row[14],
            is_seeded=bool(row[15]),
            delegation_depth=row[16],
            cwd=_unpack(row[17]),
            parent_session=_unpack(row[18]),
            origin=row[19],
            agent_preset=_unpack(row[20]),
        )
    else:
        header = HeaderProblem(cast(ProblemKind, row[21]), _unpack(row[22]))
    failure = LogFailure(row[23], _unpack(row[24])) if row[23] is not None else None
    return IndexedLog(
        id=row[0],
        found=found,
        read_at_ns=row[10],
        bytes_hash=row[11],
        family=row[12],
        header=header,
        failure=failure,
        row_count=row[25],
        oldest=row[26],
        newest=row[27],
        content=row[28],
    )


def _pack(text: str | None) -> str | bytes | None:
    """Lone surrogates, which headers may hold, do not fit into SQLite's text."""
    if text is None or text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _unpack(value: Any) -> Any:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def load_discovery(connection: sqlite3.Connection, catalog: Catalog) -> Discovery | None:
    """Return the remembered directory listings and logs, to be checked against the store."""
    directories = {
        _path(path): DirectoryState(
            mtime_ns, ctime_ns, inode, listed_at_ns, _names(names), _names(strays)
        )
        for path, mtime_ns, ctime_ns, inode, listed_at_ns, names, strays in connection.execute(
            "SELECT path, mtime_ns, ctime_ns, inode, listed_at_ns, names, strays FROM directories"
        )
    }
    if not directories:
        return None
    places = {"/".join(log.place): log.found for log in catalog.logs.values()}
    return Discovery((), (), directories, places=places)


def save_directories(
    connection: sqlite3.Connection,
    directories: Mapping[str, DirectoryState],
    known: Mapping[str, DirectoryState],
) -> None:
    """Store the listings that differ from the `known` ones, forget those that are gone."""
    connection.executemany(
        "INSERT OR REPLACE INTO directories VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            (
                _column(path),
                state.mtime_ns,
                state.ctime_ns,
                state.inode,
                state.listed_at_ns,
                _column("/".join(state.names)),
                _column("/".join(state.strays)),
            )
            for path, state in directories.items()
            if known.get(path) != state
        ),
    )
    connection.executemany(
        "DELETE FROM directories WHERE path = ?",
        ((_column(path),) for path in known.keys() - directories.keys()),
    )


def _column(path: str) -> str | bytes:
    """File names may be any bytes; those that are no UTF-8 are stored as bytes."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogateescape")
    return path


def _path(value: str | bytes) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _names(value: str | bytes) -> tuple[str, ...]:
    text = _path(value)
    return tuple(text.split("/")) if text else ()


def hash_file(path: Path) -> bytes:
    """Return a hash of a file's bytes, read in pieces.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK):
            digest.update(chunk)
    return digest.digest()


def hash_revisions(revisions: Iterable[LogRevision]) -> bytes | None:
    """Return a hash of other logs' revisions, None if there are none."""
    text = repr(
        [tuple(getattr(revision, name) for name in LogRevision.__slots__) for revision in revisions]
    )
    return None if text == "[]" else hashlib.blake2b(text.encode(), digest_size=16).digest()

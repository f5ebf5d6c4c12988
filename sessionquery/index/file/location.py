"""Where the index of a home lies, and whose file is at that place.

Nothing here opens a database for writing. A file is only looked at through SQLite itself: opening
it any other way would, on closing, drop the locks that SQLite holds in this process.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from dsh_memory.sessionquery.errors import INDEX_FAILED, SessionQueryError
from dsh_memory.sessionquery.index.file.schema import APPLICATION_ID, INDEX_VERSION, OUR_TABLES

MEMORY: Final = ":memory:"

_HEADER_BYTES: Final = 100
_MARK_AT: Final = 68

Owner = Literal["absent", "ours", "broken", "garbage", "foreign"]


@dataclass(frozen=True, slots=True)
class IndexLocation:
    """Where one home's index lies.

    Attributes:
        home: Real path of the home, stored in the index.
        path: The database file, None for an index in memory.
        explicit: Whether the path was configured. Then whatever is not evidently our index for
            this home is refused; at the default place, whose name is ours, garbage is replaced.
    """

    home: str
    path: Path | None
    explicit: bool


def locate_index(home: str, index_path: str | None) -> IndexLocation:
    """Apply the configuration: None is the default place, ``":memory:"`` no file at all."""
    real_home = os.path.realpath(home)
    # The index notes the home as text; a path need not be valid UTF-8.
    noted = os.fsencode(real_home).decode("utf-8", "backslashreplace")
    if index_path == MEMORY:
        return IndexLocation(noted, None, explicit=True)
    if index_path is not None:
        path = Path(os.path.realpath(Path(index_path).expanduser()))
        return IndexLocation(noted, path, explicit=True)
    return IndexLocation(noted, _default_path(real_home), explicit=False)


def _default_path(real_home: str) -> Path:
    import platformdirs

    digest = hashlib.sha256(os.fsencode(real_home)).hexdigest()[:16]
    try:
        folder = Path(platformdirs.user_cache_dir("dsh-memory", appauthor=False))
    except RuntimeError as error:  # no HOME, and no entry for this user
        raise SessionQueryError(
            "This user has no home directory, so there is no place for the index.",
            code=INDEX_FAILED,
            hint="Set HOME or XDG_CACHE_HOME, or index.path to a file or :memory:.",
        ) from error
    return folder / f"{digest}-i{INDEX_VERSION}.sqlite3"


def inspect_file(location: IndexLocation) -> Owner:
    """Tell whose file is at the place, without changing anything.

    Returns:
        ``ours`` also for our index whose contents are damaged behind its first pages, ``broken``
        for one that is recognizably ours and cannot be read, ``garbage`` for no database at all.

    Raises:
        SessionQueryError: ``INDEX_FAILED`` for our index of another home or version.
        OSError: The place cannot be looked at.
    """
    path = location.path
    assert path is not None
    try:
        status = path.stat()
    except FileNotFoundError:
        return "absent"
    if not stat.S_ISREG(status.st_mode):
        return "foreign"
    if status.st_size == 0:
        return "absent"
    connection = sqlite3.connect(
        f"file:{_uri_path(path)}?mode=ro&immutable=1", uri=True, isolation_level=None
    )
    try:
        return _inspect(connection, location)
    finally:
        connection.close()


def _inspect(connection: sqlite3.Connection, location: IndexLocation) -> Owner:
    try:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return "broken" if _has_our_mark(location.path) else "garbage"
    ours = mark == APPLICATION_ID
    try:
        tables = {
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            )
        }
        if not ours:
            return "broken" if tables and tables <= OUR_TABLES else "foreign"
        if version == INDEX_VERSION and not tables <= OUR_TABLES:
            return "foreign" if location.explicit else "broken"
        stored = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        # The second for a message about a damaged schema, which need not be UTF-8.
        return "broken" if ours else "garbage"
    if not location.explicit and (
        version != INDEX_VERSION
        or stored.get("version") != INDEX_VERSION
        or stored.get("home") != location.home
    ):
        # The name of the default place tells home and version, so this is damage.
        return "broken"
    if (version == INDEX_VERSION) != (stored.get("version") == INDEX_VERSION):
        return "broken"
    if version != INDEX_VERSION:
        raise _mismatch(location, f"has the index version {version}, not {INDEX_VERSION}")
    if stored.get("home") != location.home:
        raise _mismatch(location, f"belongs to the home {stored.get('home')}, not {location.home}")
    return "ours"


def _has_our_mark(path: Path | None) -> bool:
    """Whether a file that SQLite cannot read begins like an index of ours.

    Opening it here may drop locks that SQLite holds on it in this process; a file in this state is
    about to be replaced anyway.
    """
    assert path is not None
    with path.open("rb") as handle:
        head = handle.read(_HEADER_BYTES)
    mark = int.from_bytes(head[_MARK_AT : _MARK_AT + 4], "big")
    return head.startswith(b"SQLite format 3\0") and mark == APPLICATION_ID


def refuse(path: Path) -> SessionQueryError:
    """Return the error for a place that is taken by something that is not our index."""
    return SessionQueryError(
        f"The file {path} is not a search index of this program; it was left alone.",
        code=INDEX_FAILED,
        hint="Configure another place (index.path), or move the file away.",
    )


def _mismatch(location: IndexLocation, what: str) -> SessionQueryError:
    return SessionQueryError(
        f"The search index {location.path} {what}; it was left alone.",
        code=INDEX_FAILED,
        hint="Configure another place (index.path), or delete this file: it can be rebuilt.",
    )


def _uri_path(path: Path) -> str:
    text = os.fspath(path)
    for character in "%?#":
        text = text.replace(character, f"%{ord(character):02x}")
    return text

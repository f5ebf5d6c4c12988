"""Which session logs a store holds: directory listings and stat calls, no log is opened.

A directory is listed again only when its own times changed or lie so close to the last listing
that a later change might not show in them.
"""

from __future__ import annotations

import operator
import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.names import (
    LONGEST_NAME,
    Encoding,
    is_flat_log,
    parse_log_name,
)
from dsh_memory.sessionquery.errors import PERSISTENCE_FAILED, SessionQueryError

RECENT_NS: Final = 2_000_000_000
"""Times this close (ns) to the moment of reading are not trusted to show a later change."""


@dataclass(frozen=True, slots=True)
class LogRevision:
    """What identifies the bytes of a log without reading them.

    Attributes:
        generation: Format generation in the file name.
        size: Bytes.
        mtime_ns: Time of the last change of the content, ns since the epoch.
        ctime_ns: Time of the last change of the inode, ns since the epoch.
        inode: Inode number.
    """

    generation: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class FoundLog:
    """The log of one session directory: its highest generation.

    The file is ``root/project/directory/name``.
    """

    project: str
    directory: str
    name: str
    encoding: Encoding
    revision: LogRevision

    @property
    def relative(self) -> str:
        return f"{self.project}/{self.directory}/{self.name}"

    def path(self, root: Path) -> Path:
        return root / self.project / self.directory / self.name


@dataclass(frozen=True, slots=True)
class DirectoryState:
    """A listing and what tells whether it still holds.

    Attributes:
        mtime_ns: The directory's mtime before the listing.
        ctime_ns: The directory's ctime before the listing.
        inode: The directory's inode.
        listed_at_ns: Wall clock at the listing.
        names: Subdirectories of the root or of a project; canonical log names of a session.
        strays: Files that should not be there (flat logs in a project directory).
    """

    mtime_ns: int
    ctime_ns: int
    inode: int
    listed_at_ns: int
    names: tuple[str, ...]
    strays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreFault:
    """Something in the directories that breaks every operation over the whole store.

    Attributes:
        path: The file or directory, relative to the root (``.`` for the root itself).
        reason: What is wrong with it, without the path.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """The state of a store's directories.

    Attributes:
        logs: One entry a session directory that has a log, ordered by project and directory.
        faults: Store-wide faults such as flat log files.
        directories: Listings by path relative to the root (``""`` is the root itself).
        listed: How many directories were really listed this time.
        places: The logs by ``project/directory``; what a later look finds unchanged is taken over
            as the same object, and if that is everything, `logs` is the same tuple.
    """

    logs: tuple[FoundLog, ...]
    faults: tuple[StoreFault, ...]
    directories: Mapping[str, DirectoryState] = field(repr=False)
    listed: int = 0
    places: Mapping[str, FoundLog] = field(default_factory=dict, repr=False)


def discover(root: Path, previous: Discovery | None, *, signal: AbortSignal) -> Discovery:
    """Look at the store below `root` (``<home>/sessions``).

    A missing root is an empty store; one that is not a directory, or is below a file, is an error.
    Symbolic links to directories are not followed, a log may be one; files other than canonical
    logs are ignored. Directories that vanish meanwhile are treated as absent.

    Args:
        root: The sessions directory.
        previous: The last result for the same root, whose listings are used where they still hold.
        signal: Polled once a session directory.

    Raises:
        SessionQueryError: ``PERSISTENCE_FAILED`` if the root is no directory or cannot be listed,
            ``ABORTED``.
    """
    scan = _Scan(root, previous, signal)
    logs = tuple(scan.logs())
    if (
        previous is not None
        and len(logs) == len(previous.logs)
        and all(map(operator.is_, logs, previous.logs))
    ):
        logs = previous.logs
    return Discovery(logs, tuple(scan.faults), scan.directories, scan.listed, scan.places)


def find_session(
    root: Path, previous: Discovery | None, directory: str, *, signal: AbortSignal
) -> Discovery:
    """The same, restricted to the session directories of one name (one a project).

    As in the original, the name is opened and not looked up: a symbolic link is followed, and
    something else than a directory of that name is a fault.

    Raises:
        SessionQueryError: As `discover`.
    """
    scan = _Scan(root, previous, signal, only=directory)
    logs = tuple(scan.logs())
    return Discovery(logs, tuple(scan.faults), scan.directories, scan.listed, scan.places)


class _Scan:
    def __init__(
        self,
        root: Path,
        previous: Discovery | None,
        signal: AbortSignal,
        *,
        only: str | None = None,
    ) -> None:
        self._only = only
        self._root = os.fspath(root)
        self._known: Mapping[str, DirectoryState] = previous.directories if previous else {}
        self._found: Mapping[str, FoundLog] = previous.places if previous else {}
        self._signal = signal
        self.places: dict[str, FoundLog] = {}
        self.directories: dict[str, DirectoryState] = {}
        self.faults: list[StoreFault] = []
        self.listed = 0

    def logs(self) -> Iterator[FoundLog]:
        try:
            top = self._listing("", depth=0)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable_root(error) from error
        for project in top.names:
            state = self._listing_or_fault(project, depth=1)
            if state is None:
                continue
            self.faults.extend(
                StoreFault(f"{project}/{name}", "a log file of the unsupported flat layout")
                for name in state.strays
            )
            for directory in self._wanted(state.names):
                self._signal.raise_if_aborted()
                relative = f"{project}/{directory}"
                found = self._unchanged_log(relative) or self._log_of(project, directory)
                if found is not None:
                    self.places[relative] = found
                    yield found

    def _wanted(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """All names, or the one that is looked for, listed or not."""
        if self._only is None:
            return names
        return (self._only,) if 0 < len(self._only) <= LONGEST_NAME else ()

    def _unusable_root(self, error: OSError) -> SessionQueryError:
        return SessionQueryError(
            f"The session store {self._root} cannot be listed: {error.strerror or error}.",
            code=PERSISTENCE_FAILED,
            hint="Check the DSH home (--home, DSH_HOME) and its permissions.",
        )

    def _listing_or_fault(self, relative: str, depth: int) -> DirectoryState | None:
        try:
            return self._listing(relative, depth=depth)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            # Only where the name itself is opened: a listing names directories and nothing else.
            if self._only is not None and depth == 2:
                self.faults.append(StoreFault(relative, "is not a directory"))
            return None
        except OSError as error:
            self.faults.append(StoreFault(relative, f"cannot be listed: {error.strerror or error}"))
            return None

    def _listing(self, relative: str, *, depth: int) -> DirectoryState:
        path = f"{self._root}/{relative}" if relative else self._root
        followed = depth == 0 or (depth == 2 and self._only is not None)
        status = os.stat(path) if followed else os.lstat(path)  # noqa: PTH116 (speed)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(20, "Not a directory", path)
        known = self._known.get(relative)
        if (
            known is not None
            and known.mtime_ns == status.st_mtime_ns
            and known.ctime_ns == status.st_ctime_ns
            and known.inode == status.st_ino
            and known.listed_at_ns - max(known.mtime_ns, known.ctime_ns) > RECENT_NS
        ):
            self.directories[relative] = known
            return known
        listed_at = time.time_ns()
        names: list[str] = []
        strays: list[str] = []
        with os.scandir(path) as entries:
            for entry in entries:
                if depth < 2:
                    if entry.is_dir(follow_symlinks=False):
                        names.append(entry.name)
                    elif depth == 1 and is_flat_log(entry.name):
                        strays.append(entry.name)
                elif parse_log_name(entry.name):
                    names.append(entry.name)
        self.listed += 1
        state = DirectoryState(
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
            listed_at,
            tuple(sorted(names)),
            tuple(sorted(strays)),
        )
        self.directories[relative] = state
        return state

    def _unchanged_log(self, relative: str) -> FoundLog | None:
        """Return the log found before if two stat calls show nothing new: the common case."""
        found = self._found.get(relative)
        known = self._known.get(relative)
        if found is None or known is None:
            return None
        path = f"{self._root}/{relative}"
        revision = found.revision
        try:
            folder, log = os.lstat(path), os.lstat(f"{path}/{found.name}")
        except OSError:
            return None
        trusted = known.listed_at_ns - RECENT_NS
        if (
            folder.st_mtime_ns == known.mtime_ns < trusted
            and folder.st_ctime_ns == known.ctime_ns < trusted
            and folder.st_ino == known.inode
            and log.st_size == revision.size
            and log.st_mtime_ns == revision.mtime_ns
            and log.st_ctime_ns == revision.ctime_ns
            and log.st_ino == revision.inode
        ):
            self.directories[relative] = known
            return found
        return None

    def _log_of(self, project: str, directory: str) -> FoundLog | None:
        relative = f"{project}/{directory}"
        state = self._listing_or_fault(relative, depth=2)
        if state is None or not state.names:
            return None
        ranked = sorted(
            ((parsed, name) for name in state.names if (parsed := parse_log_name(name))),
            reverse=True,
        )
        (generation, encoding), name = ranked[0]
        if len(ranked) > 1 and ranked[1][0][0] == generation:
            self.faults.append(
                StoreFault(relative, f"two logs of generation {generation}: {name}, {ranked[1][1]}")
            )
            return None
        try:
            status = os.stat(f"{self._root}/{relative}/{name}")  # noqa: PTH116 (speed)
        except (FileNotFoundError, NotADirectoryError):
            self.directories.pop(relative, None)
            return None
        except OSError as error:
            self.faults.append(
                StoreFault(f"{relative}/{name}", f"cannot be read: {error.strerror or error}")
            )
            return None
        if not stat.S_ISREG(status.st_mode):
            self.faults.append(StoreFault(f"{relative}/{name}", "is not a file"))
            return None
        revision = LogRevision(
            generation, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        )
        return FoundLog(project, directory, name, encoding, revision)

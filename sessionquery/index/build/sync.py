"""Bringing an index up to date with a store: only what changed is read.

An unchanged store costs directory and file stat calls, no listing and no opened log. A log whose
times were so close to its last reading that a later change might not show in them is checked by
its hash at the next occasion.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.discovery import DirectoryState, Discovery, FoundLog
from dsh_memory.sessionquery.disk.header import HeaderProblem
from dsh_memory.sessionquery.disk.header_reader import read_header
from dsh_memory.sessionquery.disk.names import CURRENT_GENERATION
from dsh_memory.sessionquery.errors import SessionQueryError
from dsh_memory.sessionquery.index.build.scanning import LogScanner, ScanTask
from dsh_memory.sessionquery.index.build.writer import IndexWriter
from dsh_memory.sessionquery.index.build.writer_thread import DirectPipeline, WriterPipeline
from dsh_memory.sessionquery.index.file.catalog import (
    Catalog,
    IndexedLog,
    Place,
    hash_file,
    hash_revisions,
    save_directories,
)
from dsh_memory.sessionquery.model.children import ChildrenOf, no_children
from dsh_memory.sessionquery.model.sessions import SessionHeader
from dsh_memory.sessionquery.store.listing import HeaderOutcome, ListedSession, classify
from dsh_memory.sessionquery.store.subagents import (
    children_of,
    family_revisions,
    subagents_by_parent,
)

_THREAD_FROM_BYTES: Final = 256 << 10
"""Below this much to read a thread does not pay."""


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What differs between a store and its index.

    Attributes:
        changed: Logs to be read.
        confirmed: Logs whose bytes were found unchanged although their times were too recent.
        removed: Numbers of logs that are gone.
        settled: Whether nothing differs and no log needs another look while its times stay.
    """

    changed: tuple[FoundLog, ...]
    confirmed: tuple[IndexedLog, ...]
    removed: tuple[int, ...]
    settled: bool

    @property
    def empty(self) -> bool:
        return not (self.changed or self.removed)


def plan_sync(
    root: Path, discovery: Discovery, catalog: Catalog, *, signal: AbortSignal
) -> SyncPlan:
    """Compare a store with the catalog of its index.

    Opens only logs whose recorded times are too close to their last reading.
    """
    changed: list[FoundLog] = []
    confirmed: list[IndexedLog] = []
    places = catalog.places
    seen = 0
    older = False
    for found in discovery.logs:
        older = older or found.revision.generation < CURRENT_GENERATION
        number = places.get((found.project, found.directory))
        if number is None:
            changed.append(found)
            continue
        seen += 1
        known = catalog.logs[number]
        if known.found != found:
            changed.append(found)
        elif not known.settled:
            signal.raise_if_aborted()
            again = _confirm(root, known)
            if again is None:
                changed.append(found)
            else:
                confirmed.append(again)
    removed: tuple[int, ...] = ()
    if seen != len(places):
        present = {(found.project, found.directory) for found in discovery.logs}
        removed = tuple(sorted(number for place, number in places.items() if place not in present))
    if older:
        changed.extend(_changed_families(root, discovery, catalog, changed))
    settled = not (changed or confirmed or removed)
    return SyncPlan(tuple(changed), tuple(confirmed), removed, settled)


def _confirm(root: Path, known: IndexedLog) -> IndexedLog | None:
    if known.bytes_hash is None:
        return None
    now = time.time_ns()
    try:
        same = hash_file(known.found.path(root)) == known.bytes_hash
    except OSError:
        return None
    if not same:
        return None
    again = replace(known, read_at_ns=now)
    return replace(again, bytes_hash=None) if again.settled else again


def _changed_families(
    root: Path, discovery: Discovery, catalog: Catalog, changed: list[FoundLog]
) -> list[FoundLog]:
    """Return the older logs whose events depend on other logs that changed."""
    known: dict[Place, HeaderOutcome] = {
        place: catalog.logs[number].header for place, number in catalog.places.items()
    }
    for found in changed:
        with suppress(SessionQueryError):
            known[found.project, found.directory] = read_header(root, found)
    out: list[FoundLog] = []
    sessions = _listed(discovery.logs, known)
    subagents = subagents_by_parent(sessions)
    already = {(found.project, found.directory) for found in changed}
    for session in sessions:
        place = (session.found.project, session.found.directory)
        if session.found.revision.generation >= CURRENT_GENERATION or place in already:
            continue
        family = hash_revisions(family_revisions(session, subagents))
        if catalog.logs[catalog.places[place]].family != family:
            out.append(session.found)
    return out


def _listed(
    logs: Iterable[FoundLog], headers: Mapping[Place, HeaderOutcome]
) -> list[ListedSession]:
    pairs = [
        (found, headers[found.project, found.directory])
        for found in logs
        if (found.project, found.directory) in headers
    ]
    return list(classify(pairs, (), policy="skip").sessions.values())


def apply_plan(
    root: Path,
    plan: SyncPlan,
    discovery: Discovery,
    catalog: Catalog,
    known_directories: Mapping[str, DirectoryState],
    writer: IndexWriter,
    *,
    signal: AbortSignal,
) -> None:
    """Read what changed and write it; the caller holds the writer lock.

    When it is aborted, the logs finished so far stay in the index.

    Raises:
        SessionQueryError: ``ABORTED``.
        sqlite3.Error: The index cannot be written.
    """
    work = sum(found.revision.size for found in plan.changed)
    pipeline = WriterPipeline() if work > _THREAD_FROM_BYTES else DirectPipeline()
    with pipeline:
        try:
            for number in plan.removed:
                pipeline.send(0, writer.remove_log, number)
            for log in plan.confirmed:
                pipeline.send(0, writer.save_row, log)
            scanner = LogScanner(root, writer, pipeline.send, signal)
            for task in _tasks(root, plan, discovery, catalog, signal):
                scanner.scan(task)
        except SessionQueryError:
            pipeline.send(0, writer.commit)
            raise
        pipeline.send(
            0,
            writer.run_in_transaction,
            lambda connection: save_directories(
                connection, discovery.directories, known_directories
            ),
        )
        pipeline.send(0, writer.commit)
    remove = signal.on_abort(writer.interrupt)
    try:
        writer.purge_deleted_terms()
    finally:
        remove()


def _tasks(
    root: Path, plan: SyncPlan, discovery: Discovery, catalog: Catalog, signal: AbortSignal
) -> Iterator[ScanTask]:
    next_id = max(catalog.logs, default=0) + 1
    numbered: list[tuple[int, FoundLog, bool]] = []
    for found in plan.changed:
        number = catalog.places.get((found.project, found.directory))
        numbered.append((number or next_id, found, number is not None))
        next_id += number is None
    # Ascending numbers: FTS5 writes out its buffer whenever a lower one follows.
    numbered.sort(key=lambda item: item[0])
    older = [item for item in numbered if item[1].revision.generation < CURRENT_GENERATION]
    for number, found, replaces in numbered:
        if found.revision.generation >= CURRENT_GENERATION:
            yield ScanTask(number, found, replaces, None, no_children)
    if not older:
        return
    subagents = subagents_by_parent(_listed(discovery.logs, _headers(root, discovery, signal)))
    children: ChildrenOf = children_of(root, subagents, signal=signal)
    own_ids = _headers_by_place(root, (found for _, found, _ in older))
    for number, found, replaces in older:
        header = own_ids.get((found.project, found.directory))
        family = (
            hash_revisions(family_revisions(ListedSession(found, header), subagents))
            if header is not None
            else None
        )
        yield ScanTask(number, found, replaces, family, children)


def _headers(root: Path, discovery: Discovery, signal: AbortSignal) -> dict[Place, HeaderOutcome]:
    out: dict[Place, HeaderOutcome] = {}
    for found in discovery.logs:
        signal.raise_if_aborted()
        with suppress(SessionQueryError):
            out[found.project, found.directory] = read_header(root, found)
    return out


def _headers_by_place(root: Path, logs: Iterable[FoundLog]) -> dict[Place, SessionHeader]:
    out: dict[Place, SessionHeader] = {}
    for found in logs:
        with suppress(SessionQueryError):
            header = read_header(root, found)
            if not isinstance(header, HeaderProblem):
                out[found.project, found.directory] = header
    return out

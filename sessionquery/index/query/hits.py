"""From ranked matches to hits with snippets, and the corpus digests that cursors carry."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dsh_memory.sessionquery.index.file.catalog import IndexedLog
from dsh_memory.sessionquery.index.file.schema import DOCUMENT_TYPES, SEQ_BITS, SEQ_MASK, SURFACES
from dsh_memory.sessionquery.index.query.cursors import corpus_digest, pack_document, session_digest
from dsh_memory.sessionquery.index.query.matching import Match, surface_expression
from dsh_memory.sessionquery.index.query.phrase import Phrase, Tokenizer
from dsh_memory.sessionquery.index.query.snippet import make_snippet
from dsh_memory.sessionquery.model.search import EventHit
from dsh_memory.sessionquery.model.sessions import SessionHeader

_IDS_A_QUERY: Final = 500


@dataclass(frozen=True, slots=True)
class Source:
    """One of the two indexes a session may be in.

    Attributes:
        connection: Inside a reading transaction.
        log: The session's entry.
    """

    connection: sqlite3.Connection
    log: IndexedLog


def make_hits(
    connection: sqlite3.Connection,
    tokenizer: Tokenizer,
    phrase: Phrase,
    matches: Sequence[Match],
    *,
    session_ids: Sequence[str],
    as_of: int | None,
    snippet_chars: int,
) -> list[EventHit]:
    """Load the documents of some matches and cut their snippets.

    Args:
        connection: Inside the transaction in which the matches were found.
        tokenizer: Finds where in a text the match is.
        phrase: The query.
        matches: In the order of the result.
        session_ids: One each match.
        as_of: The surface at this time (ms), None for now.
        snippet_chars: Largest snippet, code points.
    """
    surface, parameters = surface_expression(as_of)
    rows: dict[int, tuple[int, int, int, str | None, str]] = {}
    ids = [match.id for match in matches]
    for start in range(0, len(ids), _IDS_A_QUERY):
        part = ids[start : start + _IDS_A_QUERY]
        marks = ",".join("?" * len(part))
        for number, *row in connection.execute(
            f"SELECT d.id, d.type, {surface}, d.time, d.tools, t.text"
            f" FROM docs AS d JOIN texts AS t ON t.id = d.id WHERE d.id IN ({marks})",
            [*parameters, *part],
        ):
            rows[number] = (row[0], row[1], row[2], row[3], row[4])
    texts = {number: row[4] for number, row in rows.items()}
    places = tokenizer.first_matches(phrase, texts)
    hits: list[EventHit] = []
    for match, session_id in zip(matches, session_ids, strict=True):
        kind, surface_number, when, tools, text = rows[match.id]
        hits.append(
            EventHit(
                session_id=session_id,
                seq=match.id & SEQ_MASK,
                type=DOCUMENT_TYPES[kind],
                time=when,
                surface=SURFACES[surface_number],
                snippet=make_snippet(text, places[match.id], snippet_chars),
                tools=tuple(json.loads(tools)) if tools else (),
            )
        )
    return hits


def newest_time(logs: Iterable[IndexedLog]) -> int:
    """Return the newest row time (ms), 0 if there are no rows."""
    return max((log.newest for log in logs if log.newest is not None), default=0)


def digest_as_of(sessions: Iterable[tuple[str, Source]], as_of: int) -> bytes:
    """Return the digest of what the sessions had at a time; sessions without rows then are none.

    Args:
        sessions: ``(session id, where it is)``.
        as_of: ms; later rows do not count.
    """
    pairs: list[tuple[str, bytes]] = []
    for session_id, source in sessions:
        log = source.log
        if log.newest is None or log.oldest is None or log.oldest > as_of:
            continue
        content = log.content if log.newest <= as_of else _content_as_of(source, as_of)
        pairs.append((session_id, content))
    return corpus_digest(pairs)


def _content_as_of(source: Source, as_of: int) -> bytes:
    log = source.log
    assert isinstance(log.header, SessionHeader)
    (packed_times,) = source.connection.execute(
        "SELECT times FROM row_times WHERE log = ?", (log.id,)
    ).fetchone()
    times = array("q")
    times.frombytes(packed_times)
    row_count = sum(time <= as_of for time in times)
    first = log.id << SEQ_BITS
    documents = bytearray()
    for number, kind, when, digest in source.connection.execute(
        "SELECT id, type, time, hash FROM docs"
        " WHERE id BETWEEN ? AND ? AND time <= ? AND closing = 0 ORDER BY id",
        (first, first | SEQ_MASK, as_of),
    ):
        documents += pack_document(number & SEQ_MASK, kind, when, digest)
    return session_digest(log.header, row_count, documents)

"""The literal scan of ``recall`` for scripts without word boundaries (document 004).

The index takes an unbroken run of Chinese or Japanese letters for one word, so that a part of it
never matches. The scan reads the texts instead: every blank-separated term must occur in the same
event, literally and without regard to case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dsh_memory.pipeline.shared.echoes import is_own_tool
from dsh_memory.pipeline.shared.engine_port import HistoryEngine
from dsh_memory.sessionquery.errors import CORRUPT_SESSION, PERSISTENCE_FAILED, SessionQueryError
from dsh_memory.sessionquery.index.query.snippet import make_snippet
from dsh_memory.sessionquery.js.casefold import simple_fold
from dsh_memory.sessionquery.js.text import split_blanks
from dsh_memory.sessionquery.log.searchable_text import PayloadError, event_text
from dsh_memory.sessionquery.log.tool_names import ToolNames
from dsh_memory.sessionquery.model.reads import EventDocument
from dsh_memory.sessionquery.model.sessions import SessionHeader

CJK: Final = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3105-\u312f\u3130-\u318f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U00020000-\U0003ffff]"
)
"""Han, Kana, Bopomofo and Hangul letters."""

_TOOL_TYPES: Final = frozenset({"tool/call", "tool/result", "assistant/message"})


@dataclass(frozen=True, slots=True)
class ScanHit:
    """A matching event of the scan."""

    header: SessionHeader
    document: EventDocument
    snippet: str
    echo: bool


@dataclass(slots=True)
class ScanOutcome:
    """What a scan found: newest sessions first, in one session as the index orders events.

    Attributes:
        scanned: How many of the `total` sessions in scope were read.
        capped: Whether it ended at the largest number of sessions, with some left.
    """

    hits: list[ScanHit]
    scanned: int = 0
    total: int = 0
    excluded_echoes: int = 0
    unreadable: int = 0
    capped: bool = False


async def scan(
    engine: HistoryEngine,
    query: str,
    *,
    sessions: Sequence[SessionHeader],
    event_filters: Sequence[dict[str, Any]],
    per_session: int,
    limit: int,
    scan_max: int,
    exclude_echoes: bool,
    snippet_chars: int,
) -> ScanOutcome:
    """Scan `sessions` in their order until `limit` events are found or `scan_max` logs are read.

    Args:
        per_session: Most events of one session.
        event_filters: Further clauses, such as a time range.
    """
    terms = split_blanks(query)
    filters = [*event_filters, *({"kind": "text", "text": term} for term in terms)]
    outcome = ScanOutcome([], total=len(sessions))
    for header in sessions[:scan_max]:
        outcome.scanned += 1
        try:
            found = await engine.filter_events(header.id, filters)
        except SessionQueryError as error:
            if error.code not in (CORRUPT_SESSION, PERSISTENCE_FAILED):
                raise
            outcome.unreadable += 1  # the search before this one had its say about it
            continue
        echoes = await _echoes(engine, header.id, found)
        eligible = list(found)
        if exclude_echoes:
            outcome.excluded_echoes += len(echoes)
            eligible = [document for document in found if document.seq not in echoes]
        eligible.sort(key=lambda document: _rank(document, terms))
        for document in eligible[:per_session]:
            at = _first(document.text, terms)
            snippet = make_snippet(document.text, at, snippet_chars)
            outcome.hits.append(ScanHit(header, document, snippet, document.seq in echoes))
            if len(outcome.hits) == limit:
                return outcome
    outcome.capped = outcome.scanned < outcome.total
    return outcome


async def _echoes(
    engine: HistoryEngine, session_id: str, found: Sequence[EventDocument]
) -> frozenset[int]:
    """The numbers of those events that are calls or results of this program's own tools."""
    candidates = {document.seq for document in found if document.type in _TOOL_TYPES}
    if not candidates:
        return frozenset()
    names = ToolNames()
    echoes: set[int] = set()
    for event in (await engine.read_session(session_id)).events:
        try:
            if not event_text(event):
                continue
        except PayloadError:
            continue
        tools = names.of(event)
        if event["seq"] in candidates and tools and all(map(is_own_tool, tools)):
            echoes.add(event["seq"])
    return frozenset(echoes)


def _rank(document: EventDocument, terms: Sequence[str]) -> tuple[int, int, int, int]:
    """The index's order: most occurrences, then shortest, then newest."""
    folded = simple_fold(document.text)
    count = sum(folded.count(simple_fold(term)) for term in terms)
    return -count, len(document.text), -document.time, -document.seq


def _first(text: str, terms: Sequence[str]) -> int:
    """Where the first term begins; folding keeps every character's place."""
    folded = simple_fold(text)
    return max(0, min(folded.find(simple_fold(term)) for term in terms))

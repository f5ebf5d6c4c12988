"""The structured results: closed models whose absent optional fields are absent, never null.

Fields and meaning are those of document 000's output schemas; ours in addition are `noul` and
`echo` of a hit and `jev`, `excluded_echoes`, `note_path`, `diagnostics` and `unreadable_sessions`
of a page. Times are milliseconds since the epoch, `seq` the zero-based event number.
"""

from __future__ import annotations

from typing import Literal

from dsh_memory.pipeline.shared.closed_models import Closed, UnreadableSessionReport

Scope = Literal["all", "cwd", "session"]


class SearchHit(Closed):
    """One match.

    `cwd` and `created_at` come from the session's authoritative header; `live` and `persisted` are
    there only in the scopes ``all`` and ``cwd``; `snippet` has at most 500 UTF-16 units; `noul` is
    the highest relevance (0 to 1) that the model gave to a part of the snippet; `echo` is true for
    calls and results of this program's own tools.
    """

    session_id: str
    cwd: str | None
    created_at: int
    live: bool | None = None
    persisted: bool | None = None
    seq: int
    type: str
    time: int
    surface: str
    snippet: str
    snippet_truncated: bool
    noul: float | None = None
    echo: bool | None = None


class JevReport(Closed):
    """How the local model judged the page (document 003).

    `selection` tells which part `results` holds: the ``kept`` or the ``filtered`` hits.
    `context_window` is the effective window in tokens; it is unknown, thus absent, when no hit had
    to be judged and the service is managed.
    """

    model: str
    threshold: float
    selection: Literal["kept", "filtered"]
    context_window: int | None = None
    reviewed: int
    kept: int
    filtered: int
    segments: int
    requests: int
    input_tokens: int
    elapsed_ms: int


class SearchResult(Closed):
    """One page of search or review. `next_cursor` is absent on the last page."""

    source: Literal["dsh"]
    query: str
    scope: Scope
    results: tuple[SearchHit, ...]
    excluded_subagent_sessions: int
    next_cursor: str | None = None
    excluded_echoes: int | None = None
    jev: JevReport | None = None
    note_path: str | None = None
    diagnostics: tuple[str, ...] | None = None
    unreadable_sessions: tuple[UnreadableSessionReport, ...] | None = None

    def with_note(self, note_path: str) -> SearchResult:
        """Return the same page with the path of the note that was made of it."""
        return self.model_copy(update={"note_path": note_path})


class ReadEvent(Closed):
    """One event of a window with as much of its text as the budget allowed."""

    seq: int
    type: str
    time: int
    text: str
    text_truncated: bool


class ReadResult(Closed):
    """A bounded window of one session, in chronological order."""

    source: Literal["dsh"]
    session_id: str
    cwd: str | None
    created_at: int
    target_seq: int
    start_seq: int
    end_seq: int
    inherited_event_count: int
    events: tuple[ReadEvent, ...]
    truncated: bool

"""The workflow that owns a run: search or review as one page, and reading one window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from dsh_memory.pipeline.memory.eligibility import EligiblePage, eligible_page, require_main
from dsh_memory.pipeline.memory.requests import (
    ReadRequest,
    SearchRequest,
    parse_read,
    parse_search,
    question_required,
)
from dsh_memory.pipeline.memory.results import ReadEvent, ReadResult, SearchResult
from dsh_memory.pipeline.shared.cancellation import stop_if_cancelled
from dsh_memory.pipeline.shared.closed_models import UnreadableSessionReport
from dsh_memory.pipeline.shared.errors import JEV_DISABLED, RequestError
from dsh_memory.pipeline.shared.readable_text import read_text
from dsh_memory.pipeline.shared.text_budget import share_budget
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.js.text import replace_surrogates

if TYPE_CHECKING:
    from dsh_memory.pipeline.shared.engine_port import EndpointSource, MemoryEngine
    from dsh_memory.runtime.config.settings import Settings
    from dsh_memory.runtime.progress import Progress


class MemoryWorkflow:
    """Runs memory requests over one engine with one set of settings.

    Stages of a page, in this order: request and question are checked before any work, one native
    page is fetched, every hit's header is checked, the local model judges the snippets (if Jev is
    enabled), a note is written (if notes are enabled). Whatever fails fails the run: there is no
    unfiltered fallback, no retry, no refill. It keeps no state between runs, so runs may overlap.

    Args:
        engine: Answers searches and reads.
        settings: The effective settings; `search`, `jev` and `obsidian` are used.
        service: Where the model endpoint comes from; needed only when Jev is enabled.
        progress: Receives the number of answered scoring requests.
    """

    def __init__(
        self,
        engine: MemoryEngine,
        settings: Settings,
        *,
        service: EndpointSource | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.engine = engine
        self.settings = settings
        self._service = service
        self._progress = progress

    async def page(
        self, value: object, *, review: bool = False, signal: AbortSignal | None = None
    ) -> SearchResult:
        """Check a request of any JSON type and run it as `recall` or `review`."""
        request = parse_search(value, review=review)
        if review:
            return await self.review(request, signal=signal)
        return await self.recall(request, signal=signal)

    async def read_value(self, value: object, *, signal: AbortSignal | None = None) -> ReadResult:
        """Check a request of any JSON type and run it as `read`."""
        return await self.read(parse_read(value), signal=signal)

    async def recall(
        self, request: SearchRequest, *, signal: AbortSignal | None = None
    ) -> SearchResult:
        """Search one page; with enabled Jev only the hits that the model keeps.

        Raises:
            RequestError: Enabled Jev without a question, or an exact subagent session.
            DshMemoryError: Any stage failed.
        """
        if self.settings.jev.enabled and request.question is None:
            raise question_required("A search with enabled Jev")
        return await self._run("recall", request, signal)

    async def review(
        self, request: SearchRequest, *, signal: AbortSignal | None = None
    ) -> SearchResult:
        """Run the same page again and return the hits that the model filters out.

        Counts and cursor are those of the search of the same page.

        Raises:
            RequestError: Jev is off, no question, or an exact subagent session.
            DshMemoryError: Any stage failed.
        """
        if not self.settings.jev.enabled:
            raise RequestError(
                "A review needs enabled Jev: without it nothing is filtered out.",
                code=JEV_DISABLED,
                hint="dsh-memory config set jev.enabled true",
            )
        if request.question is None:
            raise question_required("A review")
        return await self._run("review", request, signal)

    async def read(self, request: ReadRequest, *, signal: AbortSignal | None = None) -> ReadResult:
        """Read the text around one event of a main session; never filtered, never exported.

        Raises:
            RequestError: ``REQUEST_SUBAGENT_SESSION``.
            SessionQueryError: The session or event is unknown or unreadable.
        """
        await stop_if_cancelled(signal)
        window = await self.engine.read_event(
            request.session_id,
            request.seq,
            before=request.before,
            after=request.after,
            signal=signal,
        )
        await stop_if_cancelled(signal)
        require_main(window.session)
        texts = [(int(event["seq"]), read_text(event)) for event in window.events]
        shares = share_budget(texts, target=request.seq, units=request.max_chars)
        events = tuple(
            ReadEvent(
                seq=int(event["seq"]),
                type=replace_surrogates(event["type"]),
                time=int(event["time"]),
                text=share.text,
                text_truncated=share.truncated,
            )
            for event, share in zip(window.events, shares, strict=True)
        )
        cwd = window.session.cwd
        return ReadResult(
            source="dsh",
            session_id=replace_surrogates(window.session.id),
            cwd=None if cwd is None else replace_surrogates(cwd),
            created_at=window.session.created_at,
            target_seq=int(window.target["seq"]),
            start_seq=window.start_seq,
            end_seq=window.end_seq,
            inherited_event_count=window.inherited_event_count,
            events=events,
            truncated=any(event.text_truncated for event in events),
        )

    async def _run(
        self,
        kind: Literal["recall", "review"],
        request: SearchRequest,
        signal: AbortSignal | None,
    ) -> SearchResult:
        await stop_if_cancelled(signal)
        exclude_echoes = self.settings.search.exclude_echoes
        page = await eligible_page(
            self.engine, request, exclude_echoes=exclude_echoes, signal=signal
        )
        fields = _page_fields(page, exclude_echoes=exclude_echoes)
        hits = page.hits
        jev = self.settings.jev
        if jev.enabled:
            from dsh_memory.pipeline.memory.relevance import judge

            assert self._service is not None, "enabled Jev needs a service"
            assert request.question is not None
            hits, fields["jev"] = await judge(
                hits,
                question=request.question,
                selection="kept" if kind == "recall" else "filtered",
                model=jev.model,
                configured_window=jev.context_window,
                service=self._service,
                progress=self._batches(),
            )
            await stop_if_cancelled(signal)
        result = SearchResult(
            source="dsh",
            query=request.query,
            scope=request.scope,
            results=tuple(hits),
            **fields,
        )
        obsidian = self.settings.obsidian
        if not obsidian.enabled:
            return result
        from dsh_memory.pipeline.memory.notes import export_note, note_content

        assert obsidian.vault_path is not None, "the settings require it"
        content = note_content(kind, request, result)
        path = await export_note(obsidian.vault_path, content, signal=signal)
        return result.with_note(str(path))

    def _batches(self) -> Callable[[int, int], None] | None:
        return None if self._progress is None else self._progress.batches


def _page_fields(page: EligiblePage, *, exclude_echoes: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"excluded_subagent_sessions": page.excluded_subagents}
    if page.next_cursor is not None:
        fields["next_cursor"] = page.next_cursor
    if exclude_echoes:
        fields["excluded_echoes"] = page.excluded_echoes
    if page.diagnostics:
        fields["diagnostics"] = tuple(replace_surrogates(text) for text in page.diagnostics)
    if page.unreadable:
        fields["unreadable_sessions"] = tuple(_unreadable(item) for item in page.unreadable)
    return fields


def _unreadable(item: Any) -> UnreadableSessionReport:
    known = {"path": item.path, "code": item.code, "reason": item.reason}
    if item.session_id is not None:
        known["session_id"] = item.session_id
    return UnreadableSessionReport(
        **{name: replace_surrogates(text) for name, text in known.items()}
    )

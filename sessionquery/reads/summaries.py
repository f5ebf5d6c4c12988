"""One line a session, for people: title and number of events, read in one pass of the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import SessionQueryError
from dsh_memory.sessionquery.model.sessions import SessionRecord
from dsh_memory.sessionquery.reads.reader import SessionReader


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A listed session and what its log says about it.

    Attributes:
        title: The last recorded title, None if there is none.
        event_count: Number of events, the closing ones of an interrupted turn included; None if
            the log cannot be read.
        error: Why the log cannot be read.
    """

    record: SessionRecord
    title: str | None = None
    event_count: int | None = None
    error: SessionQueryError | None = None


def summarize(
    reader: SessionReader,
    records: Iterable[SessionRecord],
    *,
    signal: AbortSignal,
) -> tuple[SessionSummary, ...]:
    """Read the logs of `records` one after the other; an unreadable one is marked, not left out.

    Raises:
        SessionQueryError: ``ABORTED``.
    """
    return tuple(_summary(reader, record, signal) for record in records)


def _summary(reader: SessionReader, record: SessionRecord, signal: AbortSignal) -> SessionSummary:
    title: str | None = None
    count = 0
    try:
        with reader.open(record.header.id, signal=signal) as session:
            for event in session.events:
                count += 1
                if event["type"] == "session/title":
                    given = event["data"].get("title")
                    title = None if given is None else str(given)
    except SessionQueryError as error:
        signal.raise_if_aborted()
        return SessionSummary(record, error=error)
    return SessionSummary(record, title, count)

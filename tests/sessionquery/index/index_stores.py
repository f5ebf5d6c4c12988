"""Small stores made on the spot, and a searcher with short methods."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.names import log_name, project_directory, session_directory
from dsh_memory.sessionquery.index.search import SearchIndex
from dsh_memory.sessionquery.model.search import EventPage, SessionPage

T0 = 1_790_000_000_000


def user_message(seq: int, text: str, time: int) -> dict[str, Any]:
    return {
        "type": "user/message",
        "seq": seq,
        "time": time,
        "data": {
            "content": [{"type": "text", "text": text}],
            "source": {"kind": "user"},
            "role": "user",
            "id": f"m{seq}",
        },
        "surfaceOp": "append",
    }


@dataclass
class Log:
    """A log on disk that grows row by row."""

    path: Path
    zstd: bool
    rows: list[dict[str, Any]] = field(default_factory=list)

    def append_rows(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows.extend(rows)
        self._write(b"".join(_line(row) for row in rows), "ab")

    def say(self, text: str, time: int | None = None) -> None:
        when = T0 + 1000 * len(self.rows) if time is None else time
        self.append_rows([user_message(len(self.rows), text, when)])

    def rewrite(self, header: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
        self.rows = []
        self._write(_line(header), "wb")
        if rows:
            self.append_rows(rows)

    def _write(self, data: bytes, mode: str) -> None:
        if self.zstd:
            data = zstandard.ZstdCompressor(write_checksum=True).compress(data)
        with self.path.open(mode) as handle:
            handle.write(data)


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


@dataclass
class Home:
    """A DSH home under construction."""

    path: Path

    @property
    def root(self) -> Path:
        return self.path / "sessions"

    def session(
        self,
        session_id: str,
        *texts: str,
        cwd: str | None = "/w",
        created: int = T0,
        zstd: bool = False,
        times: Sequence[int] | None = None,
        **header: Any,
    ) -> Log:
        """Write a session with one user message a text, a second apart."""
        folder = self.root / project_directory(cwd) / session_directory(session_id)
        folder.mkdir(parents=True, exist_ok=True)
        log = Log(folder / log_name(4, "zstd" if zstd else "plain"), zstd)
        moments = times or [created + 1000 * number for number in range(len(texts))]
        log.rewrite(
            self.header(session_id, cwd=cwd, created=created, **header),
            [user_message(n, text, moments[n]) for n, text in enumerate(texts)],
        )
        return log

    @staticmethod
    def header(
        session_id: str, *, cwd: str | None = "/w", created: int = T0, **more: Any
    ) -> dict[str, Any]:
        return {
            "type": "session",
            "version": 4,
            "id": session_id,
            "createdAt": created,
            **({"cwd": cwd} if cwd else {}),
            "isSeeded": False,
            "delegationDepth": 0,
            **more,
        }


@dataclass
class Searcher:
    """A `SearchIndex` with short methods."""

    index: SearchIndex

    def sessions(self, query: str, **arguments: Any) -> SessionPage:
        signal = arguments.pop("signal", None) or AbortSignal()
        return self.index.search_sessions(query, **arguments, signal=signal)

    def events(self, session_id: str, query: str, **arguments: Any) -> EventPage:
        signal = arguments.pop("signal", None) or AbortSignal()
        return self.index.search_events(session_id, query, **arguments, signal=signal)

    def ids(self, query: str, **arguments: Any) -> list[str]:
        return [hit.header.id for hit in self.sessions(query, **arguments).items]

    def pages(self, query: str, **arguments: Any) -> list[list[str]]:
        """Follow the cursors to the end."""
        out: list[list[str]] = []
        cursor = None
        while True:
            page = self.sessions(query, cursor=cursor, **arguments)
            out.append([hit.header.id for hit in page.items])
            cursor = page.next_cursor
            if cursor is None:
                return out

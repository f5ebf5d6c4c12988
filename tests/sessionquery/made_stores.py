"""Small stores written row by row, and the rows to write."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.disk.discovery import FoundLog, discover
from dsh_memory.sessionquery.disk.header import format_status_of
from dsh_memory.sessionquery.disk.names import (
    Encoding,
    log_name,
    project_directory,
    session_directory,
)
from dsh_memory.sessionquery.live import LiveSessions, LoadedLog
from dsh_memory.sessionquery.log.reader import EventStream
from dsh_memory.sessionquery.model.sessions import SURFACE_NAMES
from dsh_memory.sessionquery.reads.reader import SessionReader
from dsh_memory.sessionquery.store.store import SessionStore

Row = dict[str, Any]
T0 = 1_790_000_000_000


def header(session_id: str, **changes: Any) -> Row:
    row = {
        "type": "session",
        "version": 4,
        "id": session_id,
        "createdAt": T0,
        "cwd": "/w",
        "isSeeded": False,
        "delegationDepth": 0,
    } | changes
    return {key: value for key, value in row.items() if value is not None}


def row(seq: int, kind: str, data: Any, **envelope: Any) -> Row:
    return {"type": kind, "seq": seq, "time": T0 + seq, "data": data, **envelope}


def turn_start(seq: int, turn: int = 1) -> Row:
    return row(seq, "turn/start", {"turn": turn})


def turn_end(seq: int, turn: int = 1, **reason: Any) -> Row:
    return row(seq, "turn/end", {"turn": turn, "reason": {"kind": "completed"} | reason})


def step_start(seq: int, turn: int = 1, step: int = 1) -> Row:
    return row(seq, "step/start", {"turn": turn, "step": step})


def step_end(seq: int, turn: int = 1, step: int = 1) -> Row:
    return row(seq, "step/end", {"turn": turn, "step": step})


def user(seq: int, text: str = "hello", *, surface: Any = "append", **changes: Any) -> Row:
    sources = {"sourceEventSeqs": changes.pop("sources")} if "sources" in changes else {}
    message = {
        "content": [{"type": "text", "text": text}],
        "source": {"kind": "user"},
        "role": "user",
        "id": f"u{seq}",
    } | changes
    return row(seq, "user/message", message, surfaceOp=surface, **sources)


def assistant(seq: int, *blocks: Row, turn: int = 1, step: int = 1) -> Row:
    message = {
        "role": "assistant",
        "content": list(blocks) or [{"type": "text", "text": "answer"}],
        "source": {"kind": "model", "provider": "p", "model": "m"},
        "id": f"a{seq}",
    }
    data = {"turn": turn, "step": step, "message": message, "usage": {}, "stream": []}
    return row(seq, "assistant/message", data, surfaceOp="append")


def tool_block(call_id: str = "c1", name: str = "read", arguments: str = "{}") -> Row:
    return {"type": "tool-call", "id": call_id, "name": name, "arguments": arguments}


def tool_call(seq: int, call_id: str = "c1", name: str = "read", arguments: str = "{}") -> Row:
    data = {"turn": 1, "step": 1, "callId": call_id, "name": name, "arguments": arguments}
    return row(seq, "tool/call", data)


def tool_result(
    seq: int,
    call_id: str = "c1",
    *,
    surface: Any = "append",
    data: Row | None = None,
    sources: list[int] | None = None,
    **changes: Any,
) -> Row:
    message = {
        "role": "tool",
        "toolCallId": call_id,
        "isError": False,
        "content": [{"type": "text", "text": "output"}],
        "source": {"kind": "tool", "callId": call_id},
        "id": f"r{seq}",
    } | changes
    envelope = {"surfaceOp": surface} | ({"sourceEventSeqs": sources} if sources else {})
    return row(
        seq, "tool/result", {"turn": 1, "step": 1, "message": message} | (data or {}), **envelope
    )


def replace(start: int, end: int) -> Row:
    return {"op": "replace", "startSeq": start, "endSeq": end}


def lines(rows: Iterable[Row | str | bytes]) -> bytes:
    """Write rows as lines; a text or bytes entry is written as it is."""
    out = []
    for entry in rows:
        if isinstance(entry, dict):
            entry = json.dumps(entry, separators=(",", ":"))
        out.append(entry if isinstance(entry, bytes) else entry.encode("utf-8"))
        out.append(b"\n")
    return b"".join(out)


def frame(data: bytes, *, checksum: bool = True, size: bool = True) -> bytes:
    compressor = zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=size)
    return compressor.compress(data)


@dataclass
class MadeStore:
    """A home below a directory; logs are written as told, right or wrong."""

    home: Path

    @property
    def root(self) -> Path:
        return self.home / "sessions"

    def path(
        self,
        session_id: str,
        *,
        cwd: str | None = "/w",
        generation: int = 4,
        encoding: Encoding = "plain",
    ) -> Path:
        folder = self.root / project_directory(cwd) / session_directory(session_id)
        return folder / log_name(generation, encoding)

    def write(
        self,
        session_id: str,
        rows: Iterable[Row | str | bytes] = (),
        *,
        encoding: Encoding = "plain",
        **changes: Any,
    ) -> Path:
        """Write a log with the usual header, changed as told; a zstd log gets a frame a row."""
        head = header(session_id, **changes)
        path = self.path(session_id, cwd=head.get("cwd"), encoding=encoding)
        entries = [head, *rows]
        if encoding == "zstd":
            return self.write_bytes(path, b"".join(frame(lines([entry])) for entry in entries))
        return self.write_bytes(path, lines(entries))

    def write_bytes(self, path: Path, data: bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def found(self) -> list[FoundLog]:
        return list(discover(self.root, None, signal=AbortSignal()).logs)

    def load(self, session_id: str) -> LoadedLog:
        name = session_directory(session_id)
        log = next(log for log in self.found() if log.directory == name)
        with EventStream(self.root, log, signal=AbortSignal()) as stream:
            events = list(stream)
            stream.rules.check_surface()
            return LoadedLog(
                header=stream.header,
                inherited_event_count=stream.rules.inherited_event_count,
                events=events,
                surfaces=[SURFACE_NAMES[code] for code in stream.rules.classification(len(events))],
                surface_order=stream.rules.surface,
                replaced_by=stream.rules.replaced_by,
                row_count=stream.row_count,
                format_status=format_status_of(log.revision.generation),
            )

    def reader(self, *, live: LiveSessions | None = None, **options: Any) -> SessionReader:
        return SessionReader(SessionStore(self.home, **options), live or LiveSessions())

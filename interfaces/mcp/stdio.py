"""The stdio transport: one JSON-RPC message a line, stopped promptly by whatever ends the client.

The SDK's own transport reads in a worker thread that no signal can interrupt. This one waits for
the descriptors, so that a signal and the end of stdin end the server at once, and a closed stdout
as soon as there is something to write.
"""

from __future__ import annotations

import json
import os
import select
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from dsh_memory.interfaces.mcp.wire import Wire
from dsh_memory.sessionquery.js.text import replace_surrogates
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

LINE_BYTES = 4 * 1024 * 1024
"""The longest message, the same as the SDK's limit for a request over HTTP."""
_CHUNK = 64 * 1024
_PIPE_BUF = 4096
"""A pipe that polls as writable takes this much without blocking (POSIX)."""

GRACE_SECONDS = 1.0
_LOOK_SECONDS = 0.05

Incoming = ObjectReceiveStream[SessionMessage | Exception]
Outgoing = ObjectSendStream[SessionMessage]


@asynccontextmanager
async def stdio_transport(wire: Wire) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Yield the message streams that an SDK server runs on; both end when the client has gone.

    After the end of stdin, requests that are being answered have `GRACE_SECONDS` if somebody still
    reads the answers (``echo ... | dsh-memory mcp``), and no time at all if not.
    """
    incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_receive = anyio.create_memory_object_stream[SessionMessage](0)
    writer = _Writer(wire.write_fd)
    unanswered = _Unanswered()
    written = anyio.Event()

    async def read() -> None:
        async with incoming_send:
            async for line in _lines(wire.read_fd):
                message = _decoded(line)
                if isinstance(message, JSONRPCError):
                    await writer.send(_encoded(message))
                elif message is not None:
                    unanswered.received(message)
                    await incoming_send.send(SessionMessage(message))
            with anyio.move_on_after(GRACE_SECONDS):
                await unanswered.settle(wire.write_fd)

    async def write() -> None:
        try:
            async with outgoing_receive:
                async for message in outgoing_receive:
                    await writer.send(_encoded(message.message))
                    unanswered.sent(message.message)
        finally:
            written.set()

    async with anyio.create_task_group() as tasks:

        async def guarded(work: Any) -> None:
            # A vanished reader of our answers is an end like any other: stop reading as well.
            try:
                await work()
            except (BrokenPipeError, ConnectionError):
                incoming_send.close()
                outgoing_receive.close()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass

        tasks.start_soon(guarded, read)
        tasks.start_soon(guarded, write)
        try:
            yield incoming, outgoing
        finally:
            outgoing.close()
            with anyio.move_on_after(GRACE_SECONDS, shield=True):
                await written.wait()
            tasks.cancel_scope.cancel()


class _Unanswered:
    """The requests that the client still waits for."""

    def __init__(self) -> None:
        self._ids: set[str | int] = set()
        self._settled = anyio.Event()

    def received(self, message: Any) -> None:
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
        elif (
            isinstance(message, JSONRPCNotification)
            and message.method == "notifications/cancelled"
            and message.params is not None
        ):
            identity = message.params.get("requestId")
            if isinstance(identity, (str, int)):  # anything else names no request
                self._ids.discard(identity)  # those are never answered

    def sent(self, message: Any) -> None:
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            self._ids.discard(message.id)
            if not self._ids:
                self._settled.set()

    async def settle(self, descriptor: int) -> None:
        """Wait until all are answered or nobody reads `descriptor` any more."""
        self._settled = anyio.Event()
        poll = select.poll()
        poll.register(descriptor, 0)  # errors are reported unasked
        while self._ids and not poll.poll(0):
            with anyio.move_on_after(_LOOK_SECONDS):
                await self._settled.wait()


async def _lines(descriptor: int) -> AsyncIterator[bytes]:
    """Yield the lines of a descriptor; an overlong one is cut to `LINE_BYTES` + 1 bytes."""
    rest = bytearray()
    overlong = False
    while data := await _read(descriptor):
        *complete, tail = data.split(b"\n")
        for part in complete:
            line, rest = (rest if overlong else rest + part), bytearray()
            overlong = False
            yield bytes(line)
        if not overlong:
            rest += tail
            overlong = len(rest) > LINE_BYTES


async def _read(descriptor: int) -> bytes:
    while True:
        try:
            await anyio.wait_readable(descriptor)
        except PermissionError:  # a file or device that is always ready
            return await anyio.to_thread.run_sync(os.read, descriptor, _CHUNK)
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            continue


def _decoded(line: bytes) -> Any:
    """Return a message, an error to answer with, or None for a blank line."""
    if not line.strip():
        return None
    if len(line) > LINE_BYTES:
        return _refusal(None, PARSE_ERROR, f"Message longer than {LINE_BYTES} bytes")
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        pass
    else:
        if isinstance(message, JSONRPCNotification) and _is_named(line):
            return _refusal(None, INVALID_REQUEST, "Invalid request")
        return message
    # JSON that only the standard parser takes, such as an escaped lone surrogate.
    try:
        value = _well_formed(json.loads(line.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return _refusal(None, PARSE_ERROR, "Parse error")
    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        identity = value.get("id") if isinstance(value, dict) else None
        known = isinstance(identity, (str, int)) and not isinstance(identity, bool)
        return _refusal(identity if known else None, INVALID_REQUEST, "Invalid request")


def _is_named(line: bytes) -> bool:
    """Whether what passed for a notification has an id, of a type that no request may have.

    Its sender waits for an answer, so that silence would be the worst one.
    """
    value = json.loads(line)
    return isinstance(value, dict) and "id" in value


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_well_formed(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): _well_formed(item) for key, item in value.items()}
    return value


def _refusal(identity: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=identity, error=ErrorData(code=code, message=message))


def _encoded(message: Any) -> bytes:
    text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
    return text.encode("utf-8") + b"\n"


class _Writer:
    """Writes whole lines without ever blocking the event loop."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = anyio.Lock()
        self._socket = stat.S_ISSOCK(os.fstat(descriptor).st_mode)

    async def send(self, line: bytes) -> None:
        """Write one line.

        Raises:
            BrokenPipeError, ConnectionError: Nobody reads any more.
        """
        async with self._lock:
            rest = memoryview(line)
            while rest:
                rest = rest[await self._some(rest) :]

    async def _some(self, data: memoryview) -> int:
        try:
            await anyio.wait_writable(self._descriptor)
        except PermissionError:  # a file or device that is always ready
            return os.write(self._descriptor, data)
        if not self._socket:
            return os.write(self._descriptor, data[:_PIPE_BUF])
        duplicate = socket.socket(fileno=os.dup(self._descriptor))
        with duplicate:
            try:
                return duplicate.send(data[:_CHUNK], socket.MSG_DONTWAIT)
            except BlockingIOError:
                return 0

"""The bytes of a log as batches of whole lines, plain or zstd.

A zstd log is a sequence of independent frames; the first holds exactly the header line, each later
one a batch of whole lines. Frame boundaries matter (a complete frame must end with a newline, a
skippable frame is corruption), so frames are walked here and only then decompressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

import zstandard

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_BLOCK_MAX: Final = 128 * 1024
_CHUNK: Final = 1 << 20
_ONE_SHOT_MAX: Final = 8 << 20
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)


class FrameError(ValueError):
    """The compressed bytes cannot be what a writer left, torn or not."""


@dataclass(frozen=True, slots=True)
class _Frame:
    end: int
    """Offset behind the frame in the buffer."""
    bound: int
    """Most bytes that it can decode to."""


def _walk(buffer: bytes, start: int, offset: int) -> _Frame | None:
    """Find the end of the frame at `start`, None when the buffer ends before it.

    `offset` is the buffer's place in the file, for messages.
    """
    size = len(buffer)
    head = buffer[start : start + 4]
    if head != _MAGIC[: len(head)]:
        raise FrameError(f"invalid frame magic at byte {offset + start}")
    position = start + 4
    if position >= size:
        return None
    descriptor = buffer[position]
    single = descriptor >> 5 & 1
    content_flag = descriptor >> 6
    content_bytes = 1 << content_flag if content_flag else single
    position += 1 + (1 - single) + _DICTIONARY_BYTES[descriptor & 3] + content_bytes
    bound = 0
    while True:
        block = position + 3
        if block > size:
            return None
        header = buffer[position] | buffer[position + 1] << 8 | buffer[position + 2] << 16
        kind = header >> 1 & 3
        if kind == 3:
            raise FrameError(f"frame at byte {offset + start} has a reserved block type")
        length = header >> 3
        if kind == 2:
            bound += _BLOCK_MAX
            position = block + length
        else:
            bound += length
            position = block + (1 if kind else length)
        if header & 1:
            break
    if descriptor & 4:
        position += 4
    return _Frame(position, bound) if position <= size else None


class FrameReader:
    """Decodes the frames of one log file in order.

    Args:
        handle: The file, positioned at its start.
        size: How many bytes of it belong to the log (later appends are not looked at).
    """

    def __init__(self, handle: BinaryIO, size: int) -> None:
        self._handle = handle
        self._left = size
        self._buffer = b""
        self._position = 0
        self._offset = 0
        self._decompressor = zstandard.ZstdDecompressor()

    def header_line(self) -> bytes | None:
        """Return the text of the first frame, None if it is torn or the file is empty.

        Raises:
            FrameError: The frame is complete but is not exactly one line.
        """
        frame = self._next_frame()
        if frame is None:
            return None
        text = b"".join(self._decode(frame))
        if not text or text.find(b"\n") != len(text) - 1:
            raise FrameError("the first frame is not exactly one header line")
        return text

    def batches(self) -> Iterator[bytes]:
        """Yield the text of the remaining frames, each batch ending with a newline.

        What the complete blocks of a torn last frame decode to counts up to its last newline.

        Raises:
            FrameError: Checksum mismatch, wrong magic, or a complete frame that ends inside a line.
        """
        while (frame := self._next_frame()) is not None:
            carry: list[bytes] = []
            for piece in self._decode(frame):
                if piece.endswith(b"\n"):
                    carry.append(piece)
                    yield carry[0] if len(carry) == 1 else b"".join(carry)
                    carry = []
                    continue
                cut = piece.rfind(b"\n") + 1
                if cut:
                    carry.append(piece[:cut])
                    yield b"".join(carry)
                    carry = [piece[cut:]]
                else:
                    carry.append(piece)
            if any(carry):
                raise FrameError("a complete frame ends inside a line")
        yield from self._torn_tail()

    def _fill(self) -> bool:
        rest = self._buffer[self._position :]
        want = min(self._left, max(_CHUNK, len(rest)))
        chunk = self._handle.read(want) if want else b""
        if not chunk:
            self._left = 0
            return False
        self._left -= len(chunk)
        self._offset += self._position
        self._buffer = rest + chunk
        self._position = 0
        return True

    def _next_frame(self) -> memoryview | None:
        while True:
            if self._position < len(self._buffer):
                frame = _walk(self._buffer, self._position, self._offset)
                if frame is not None:
                    view = memoryview(self._buffer)[self._position : frame.end]
                    self._bound = frame.bound
                    self._start = self._offset + self._position
                    self._position = frame.end
                    return view
            if not self._fill():
                return None

    def _decode(self, frame: memoryview) -> Iterator[bytes]:
        try:
            if self._bound <= _ONE_SHOT_MAX:
                # A frame header without content size needs the bound; with one it is ignored.
                text = self._decompressor.decompress(frame, max_output_size=self._bound or 1)
                if text:
                    yield text
                return
            with self._decompressor.stream_reader(frame, read_across_frames=False) as reader:
                while piece := reader.read(_CHUNK):
                    yield piece
        except zstandard.ZstdError as error:
            raise FrameError(f"frame at byte {self._start} failed validation: {error}") from error

    def _torn_tail(self) -> Iterator[bytes]:
        tail = memoryview(self._buffer)[self._position :]
        if len(tail) < 5:
            return
        try:
            with self._decompressor.stream_reader(tail, read_across_frames=False) as reader:
                carry = b""
                while piece := reader.read(_CHUNK):
                    carry += piece
                    cut = carry.rfind(b"\n") + 1
                    if cut:
                        yield carry[:cut]
                        carry = carry[cut:]
        except zstandard.ZstdError as error:
            raise FrameError(
                f"torn frame at byte {self._offset + self._position} failed validation: {error}"
            ) from error


class PlainReader:
    """The same for a plain log: batches of whole lines, bytes after the last newline ignored."""

    def __init__(self, handle: BinaryIO, size: int) -> None:
        self._handle = handle
        self._left = size
        self._carry = b""

    def header_line(self) -> bytes | None:
        """Return the first line with its newline, None if there is no complete line."""
        parts: list[bytes] = []
        chunk_size = 4096
        while self._left:
            chunk = self._handle.read(min(chunk_size, self._left))
            if not chunk:
                break
            self._left -= len(chunk)
            cut = chunk.find(b"\n") + 1
            if cut:
                parts.append(chunk[:cut])
                self._carry = chunk[cut:]
                return b"".join(parts)
            parts.append(chunk)
            chunk_size = min(_CHUNK, chunk_size * 2)
        return None

    def batches(self) -> Iterator[bytes]:
        """Yield the lines after the header."""
        carry = [self._carry]
        self._carry = b""
        while True:
            chunk = self._handle.read(min(_CHUNK, self._left)) if self._left else b""
            self._left -= len(chunk)
            cut = chunk.rfind(b"\n") + 1
            if cut:
                carry.append(chunk[:cut])
                yield b"".join(carry)
                carry = [chunk[cut:]]
            elif chunk:
                carry.append(chunk)
            else:
                break
        rest = b"".join(carry)
        cut = rest.rfind(b"\n") + 1
        if cut:
            yield rest[:cut]


def lines_of(batch: bytes) -> Iterator[bytes | memoryview]:
    """Yield the lines of a batch without their newlines; a huge batch is not copied."""
    if len(batch) <= _ONE_SHOT_MAX:
        lines = batch.split(b"\n")
        lines.pop()
        yield from lines
        return
    view = memoryview(batch)
    start = 0
    while (end := batch.find(b"\n", start)) >= 0:
        yield view[start:end]
        start = end + 1

"""The bytes of a log as batches of whole lines, plain or zstd.

A zstd log is a sequence of independent frames; the first holds exactly the header line. The texts
of the other complete frames are joined before lines are looked for: a line may be split over
several, but the last of them must end one. A skippable frame is corruption, and what a frame's
header says of its size is not believed, so frames are walked here and only then decompressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_BLOCK_MAX: Final = 128 * 1024
_CHUNK: Final = 1 << 20
_HEADER_CHUNK: Final = 1 << 12
_TORN_CHUNK: Final = 1 << 12
_RUN_MAX: Final = 1 << 18
"""Output of one decoding call; larger ones fall out of the processor's caches."""
_ONE_SHOT_MAX: Final = 8 << 20
ROW_MAX: Final = (1 << 29) - 24
"""Bytes of the longest row: the original's strings end at so many UTF-16 units."""
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)


class FrameError(ValueError):
    """The compressed bytes cannot be what a writer left, torn or not."""


class _Frame(NamedTuple):
    start: int
    """Offset in the buffer."""
    end: int
    """Offset behind the frame in the buffer."""
    bound: int
    """Most bytes that it can decode to."""
    size: int | None
    """Bytes that it decodes to, if its header says so."""


def _walk(buffer: bytes, start: int, offset: int) -> _Frame | None:
    """Find the end of the frame at `start`, None when the buffer ends before it.

    `offset` is the buffer's place in the file, for messages.
    """
    size = len(buffer)
    position = start + 5
    if buffer[start : start + 4] != _MAGIC:
        if start + 4 > size:
            return None
        raise FrameError(f"invalid frame magic at byte {offset + start}")
    if position > size:
        return None
    descriptor = buffer[start + 4]
    if descriptor & 8:
        raise FrameError(f"frame at byte {offset + start} has a reserved bit")
    single = descriptor >> 5 & 1
    content_flag = descriptor >> 6
    content_bytes = 1 << content_flag if content_flag else single
    position += (1 - single) + _DICTIONARY_BYTES[descriptor & 3] + content_bytes
    content: int | None = None
    if content_bytes:
        content = int.from_bytes(buffer[position - content_bytes : position], "little")
        if content_bytes == 2:
            content += 256
    bound = 0
    while True:
        block = position + 3
        if block > size:
            return None
        header = buffer[position] | buffer[position + 1] << 8 | buffer[position + 2] << 16
        kind = header >> 1 & 3
        length = header >> 3
        if kind == 2:
            bound += _BLOCK_MAX
            position = block + length
        elif kind == 3:
            raise FrameError(f"frame at byte {offset + start} has a reserved block type")
        else:
            bound += min(length, _BLOCK_MAX)
            position = block + (1 if kind else length)
        if header & 1:
            break
    if descriptor & 4:
        position += 4
    if position > size:
        return None
    if content is not None and content > bound:
        # Nothing may be allocated for a size that its blocks cannot have.
        raise FrameError(
            f"frame at byte {offset + start} declares {content} bytes, its blocks hold {bound}"
        )
    return _Frame(start, position, bound, content)


class _Line:
    """Joins pieces of text into batches of whole lines.

    Attributes:
        text: The whole lines so far.
        rest: How many bytes follow the last newline.
    """

    def __init__(self) -> None:
        self.text = b""
        self.rest = 0
        self._open: list[bytes] = []

    def add(self, piece: bytes) -> bool:
        """Append a piece; True if there are whole lines to take now.

        Raises:
            FrameError: A line is longer than `ROW_MAX`.
        """
        cut = piece.rfind(b"\n") + 1
        if not cut:
            self.rest += len(piece)
            if self.rest > ROW_MAX:
                self._open.clear()
                raise FrameError(f"a row is longer than {ROW_MAX} bytes")
            if piece:
                self._open.append(piece)
            return False
        if self._open or cut < len(piece):
            self._open.append(piece[:cut])
            lines = self._open
            self._open = [piece[cut:]] if cut < len(piece) else []
            piece = b"".join(lines)
        self.text = self.text + piece if self.text else piece
        self.rest = sum(map(len, self._open))
        return True

    def take(self) -> bytes:
        """Return the whole lines and keep what follows them."""
        text, self.text = self.text, b""
        return text


class FrameReader:
    """Decodes the frames of one log file in order.

    Args:
        handle: The file, positioned at its start.
        size: How many bytes of it belong to the log (later appends are not looked at).

    Attributes:
        torn: Whether the rows now given may have been torn when they were written: those of an
            incomplete last frame.
    """

    def __init__(self, handle: BinaryIO, size: int) -> None:
        self._handle = handle
        self._left = size
        self._buffer = b""
        self._position = 0
        self._offset = 0
        self.torn = False
        # Plain stores need not pay for loading it.
        import zstandard

        self._error = zstandard.ZstdError
        self._decompressor = zstandard.ZstdDecompressor()

    def header_line(self) -> bytes | None:
        """Return the text of the first frame, None if it is torn or the file is empty.

        Raises:
            FrameError: The frame is complete but is not exactly one line.
        """
        while (frame := self._next_frame()) is None:
            if not self._fill(_HEADER_CHUNK):
                return None
        line = _Line()
        for piece in self._decode(frame):
            if line.add(piece) and line.rest:
                break
        if line.rest or line.text.count(b"\n") != 1:
            raise FrameError("the first frame is not exactly one header line")
        return line.text

    def batches(self) -> Iterator[bytes]:
        """Yield the text of the remaining frames, each batch ending with a newline.

        What the complete blocks of a torn last frame decode to counts up to its last newline.

        Raises:
            FrameError: Checksum mismatch, wrong magic, a size that cannot be, a row above
                `ROW_MAX`, or a last complete frame that ends inside a line.
        """
        lines = _Line()
        while True:
            run = self._run()
            if not run and not self._fill(_CHUNK):
                break
            for piece in self._decode_run(run):
                if lines.add(piece):
                    yield lines.take()
        if lines.rest:
            raise FrameError("the last complete frame ends inside a line")
        yield from self._torn_tail()

    def _fill(self, chunk_size: int) -> bool:
        rest = self._buffer[self._position :]
        want = min(self._left, max(chunk_size, len(rest)))
        chunk = self._handle.read(want) if want else b""
        if not chunk:
            self._left = 0
            return False
        self._left -= len(chunk)
        self._offset += self._position
        self._buffer = rest + chunk
        self._position = 0
        return True

    def _next_frame(self) -> _Frame | None:
        if self._position >= len(self._buffer):
            return None
        frame = _walk(self._buffer, self._position, self._offset)
        if frame is not None:
            self._position = frame.end
        return frame

    def _run(self) -> list[_Frame]:
        """Take the frames in the buffer that can be decoded together, else the next one alone."""
        run: list[_Frame] = []
        total = 0
        while True:
            before = self._position
            frame = self._next_frame()
            if frame is None:
                return run
            if frame.size is None or total + frame.size > _RUN_MAX:
                if run:
                    self._position = before
                else:
                    run.append(frame)
                return run
            total += frame.size
            run.append(frame)

    def _decode_run(self, run: list[_Frame]) -> Iterator[bytes]:
        """Decode neighbouring frames of known size in one call, which saves most of the cost."""
        if len(run) > 1:
            frames = memoryview(self._buffer)[run[0].start : run[-1].end]
            decoder = self._decompressor.decompressobj(read_across_frames=True)
            try:
                text = decoder.decompress(frames)
            except self._error:
                text = b""
            if len(text) == sum(frame.size or 0 for frame in run):
                if text:
                    yield text
                return
        # Whatever is wrong, it is found and named frame by frame.
        for frame in run:
            yield from self._decode(frame)

    def _decode(self, frame: _Frame) -> Iterator[bytes]:
        view = memoryview(self._buffer)[frame.start : frame.end]
        start = self._offset + frame.start
        try:
            if frame.bound <= _ONE_SHOT_MAX:
                # A frame header without content size needs the bound; with one it is ignored.
                text = self._decompressor.decompress(view, max_output_size=frame.bound or 1)
                if text:
                    yield text
                return
            with self._decompressor.stream_reader(view, read_across_frames=False) as reader:
                while piece := reader.read(_CHUNK):
                    yield piece
        except self._error as error:
            raise FrameError(f"frame at byte {start} failed validation: {error}") from error

    def _torn_tail(self) -> Iterator[bytes]:
        tail = memoryview(self._buffer)[self._position :]
        self.torn = True
        if len(tail) < 5:
            return
        # A decoder takes input and gives output block by block; what a damaged block would have
        # given is as lost as what was never written.
        decoder = self._decompressor.decompressobj()
        lines = _Line()
        for start in range(0, len(tail), _TORN_CHUNK):
            try:
                piece = decoder.decompress(tail[start : start + _TORN_CHUNK])
            except self._error:
                return
            if lines.add(piece):
                yield lines.take()


class PlainReader:
    """The same for a plain log: batches of whole lines, bytes after the last newline ignored."""

    torn = True
    """Any row of a plain log may have been torn."""

    def __init__(self, handle: BinaryIO, size: int) -> None:
        self._handle = handle
        self._left = size
        self._carry = b""

    def header_line(self) -> bytes | None:
        """Return the first line with its newline, None if none ends within `ROW_MAX`."""
        parts: list[bytes] = []
        chunk_size = 4096
        seen = 0
        while self._left and seen <= ROW_MAX:
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
            seen += len(chunk)
            chunk_size = min(_CHUNK, chunk_size * 2)
        return None

    def batches(self) -> Iterator[bytes]:
        """Yield the lines after the header.

        Raises:
            FrameError: A row above `ROW_MAX`.
        """
        lines = _Line()
        piece, self._carry = self._carry, b""
        while True:
            if lines.add(piece):
                yield lines.take()
            piece = self._handle.read(min(_CHUNK, self._left)) if self._left else b""
            if not piece:
                return
            self._left -= len(piece)


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

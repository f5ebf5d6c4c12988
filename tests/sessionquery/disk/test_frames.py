"""The bytes of a zstd log: whole frames, torn tails, damage."""

from __future__ import annotations

import io
import itertools
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from dsh_memory.sessionquery.disk.frames import FrameError, FrameReader, PlainReader, lines_of
from hypothesis import given, settings
from hypothesis import strategies as st
from made_stores import frame

HEADER = b'{"type":"session"}\n'
TEXTS = st.lists(st.text("ab \u00e9", max_size=30), max_size=12)
OPTIONS = st.tuples(st.booleans(), st.booleans())


def read(data: bytes, size: int | None = None) -> bytes:
    reader = FrameReader(io.BytesIO(data), len(data) if size is None else size)
    assert reader.header_line() == HEADER
    return b"".join(reader.batches())


def batch(texts: list[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


@given(st.lists(st.tuples(TEXTS, OPTIONS), max_size=8))
def test_all_frames_are_decoded_in_order(frames: list[tuple[list[str], tuple[bool, bool]]]) -> None:
    data = frame(HEADER) + b"".join(
        frame(batch(texts), checksum=checksum, size=size) for texts, (checksum, size) in frames
    )
    assert read(data) == b"".join(batch(texts) for texts, _ in frames)


@settings(max_examples=60)
@given(st.lists(TEXTS, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_a_torn_log_gives_its_whole_frames(frames: list[list[str]], rng: random.Random) -> None:
    parts = [frame(batch(texts)) for texts in frames]
    data = frame(HEADER) + b"".join(parts)
    cut = rng.randrange(len(frame(HEADER)), len(data) + 1)
    whole, end = b"", len(frame(HEADER))
    rest = b""
    for texts, part in zip(frames, parts, strict=True):
        if end + len(part) > cut:
            rest = batch(texts)
            break
        end += len(part)
        whole += batch(texts)
    got = read(data[:cut])
    assert got.startswith(whole)
    extra = got[len(whole) :]
    assert rest.startswith(extra)
    assert not extra or extra.endswith(b"\n")


def noise(size: int) -> bytes:
    rng = random.Random(7)
    return bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz0123456789", k=size))


def test_complete_blocks_of_a_torn_frame_count_up_to_the_last_newline() -> None:
    first, second = noise(1000), noise(400_000)
    torn = frame(first + b"\n" + second + b"\nlast\n")
    assert read(frame(HEADER) + torn[: len(torn) // 2]) == first + b"\n"


def test_rows_of_a_torn_frame_are_marked() -> None:
    big = noise(1000) + b"\n" + noise(400_000) + b"\n"
    data = frame(HEADER) + frame(b"whole\n") + frame(big)[:-100]
    reader = FrameReader(io.BytesIO(data), len(data))
    reader.header_line()
    seen = [(batch, reader.torn) for batch in reader.batches()]
    assert [torn for _, torn in seen] == [False, True]


def test_a_damaged_torn_frame_gives_what_came_before_the_damage() -> None:
    torn = bytearray(frame(noise(1000) + b"\n" + noise(400_000))[:250_000])
    torn[200_000] ^= 0xFF
    assert read(frame(HEADER) + bytes(torn)).endswith(b"\n")


@pytest.mark.parametrize("tail", [b"\x28", b"\x28\xb5\x2f", b"\xff\x00\x01", b"\n"])
def test_less_than_a_magic_number_is_ignored(tail: bytes) -> None:
    assert read(frame(HEADER) + frame(b"a\n") + tail) == b"a\n"


def test_bytes_behind_the_given_size_are_not_looked_at() -> None:
    data = frame(HEADER) + frame(b"a\n")
    assert read(data + b"garbage", size=len(data)) == b"a\n"


def flipped_checksum() -> bytes:
    data = bytearray(frame(b"a\n"))
    data[-1] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(flipped_checksum(), id="checksum"),
        pytest.param(b"\xff\x01\x02\x03", id="garbage"),
        pytest.param(b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd", id="skippable"),
    ],
)
@pytest.mark.parametrize("after", [b"", frame(b"b\n")])
def test_damage_in_complete_frames_is_an_error(part: bytes, after: bytes) -> None:
    with pytest.raises(FrameError):
        read(frame(HEADER) + frame(b"a\n") + part + after)


@pytest.mark.parametrize(
    "data",
    [
        frame(HEADER + b"x\n"),
        frame(b"no newline"),
        frame(b""),
        b"plain text\n",
    ],
)
def test_the_first_frame_must_be_one_line(data: bytes) -> None:
    with pytest.raises(FrameError):
        FrameReader(io.BytesIO(data), len(data)).header_line()


@pytest.mark.parametrize("data", [b"", frame(HEADER)[:-1], frame(HEADER)[:3]])
def test_a_torn_first_frame_is_no_header(data: bytes) -> None:
    assert FrameReader(io.BytesIO(data), len(data)).header_line() is None


class Drip(io.RawIOBase):
    """A file that gives a few bytes a read."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, 7))


def test_short_reads_change_nothing() -> None:
    parts = [batch([str(n)] * n) for n in range(12)]
    data = frame(HEADER) + b"".join(map(frame, parts))
    reader = FrameReader(Drip(data), len(data))  # type: ignore[arg-type]
    assert reader.header_line() == HEADER
    assert b"".join(reader.batches()) == b"".join(parts)


@given(st.binary(max_size=200), st.integers(0, 210))
def test_a_plain_log_gives_its_whole_lines(body: bytes, size: int) -> None:
    data = HEADER + body
    size = min(size + len(HEADER), len(data))
    reader = PlainReader(io.BytesIO(data), size)
    assert reader.header_line() == HEADER
    text = data[len(HEADER) : size]
    assert b"".join(reader.batches()) == text[: text.rfind(b"\n") + 1]


def test_a_plain_log_without_a_newline_has_no_header() -> None:
    assert PlainReader(io.BytesIO(b"{}"), 2).header_line() is None


def test_lines_of_a_huge_batch_are_views() -> None:
    def texts(lines: Iterator[bytes | memoryview]) -> list[bytes]:
        return [bytes(line) for line in lines]

    huge = b"x" * (9 << 20) + b"\ny\n\n"
    lines = list(lines_of(huge))
    assert isinstance(lines[0], memoryview)
    assert texts(iter(lines))[1:] == [b"y", b""]
    assert texts(lines_of(b"a\n\nb\n")) == [b"a", b"", b"b"]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6))
def test_a_line_may_be_split_over_complete_frames_anywhere(text: bytes, cuts: list[int]) -> None:
    text += b"\n"
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(places)]
    if not pieces[-1]:
        pieces.pop()
    assert read(frame(HEADER) + b"".join(map(frame, pieces))) == text


@pytest.mark.parametrize("last", [b"open", b""])
@pytest.mark.parametrize("tail", [b"", frame(b"rest\n")[:3], frame(b"rest\n")[:-5]])
def test_the_last_complete_frame_may_not_end_inside_a_line(last: bytes, tail: bytes) -> None:
    data = frame(HEADER) + frame(b"a\nopen") + frame(last) + tail
    with pytest.raises(FrameError, match="inside a line"):
        read(data)


def lying(text: bytes, declared: int) -> bytes:
    """A frame whose header declares another size than its blocks hold."""
    honest = frame(text, checksum=False, size=False)
    descriptor, blocks = honest[4], honest[6:]
    assert descriptor >> 5 == 0
    return (
        honest[:4]
        + bytes([0xC0 | descriptor])
        + honest[5:6]
        + declared.to_bytes(8, "little")
        + blocks
    )


@pytest.mark.parametrize("declared", [10**12, 1 << 40, (1 << 64) - 1, 200_000_000])
def test_a_declared_size_is_compared_with_what_the_blocks_can_hold(declared: int) -> None:
    with pytest.raises(FrameError, match="declares"):
        read(frame(HEADER) + lying(b"row\n", declared))
    with pytest.raises(FrameError, match="declares"):
        FrameReader(io.BytesIO(lying(HEADER, declared)), 1 << 20).header_line()


def test_a_small_frame_that_unfolds_beyond_any_row_is_damage_and_not_an_end_of_memory() -> None:
    """Blocks that repeat one byte: four bytes in the file are 128 KiB of text."""
    block = (128 * 1024 << 3 | 1 << 1).to_bytes(3, "little") + b"x"
    bomb = b"\x28\xb5\x2f\xfd\x00\x38" + block * 40_000 + b"\x01\x00\x00"
    code = f"""
import io, resource, sys
from dsh_memory.sessionquery.disk.frames import FrameError, FrameReader
data = {frame(HEADER)!r} + sys.stdin.buffer.read()
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
reader = FrameReader(io.BytesIO(data), len(data))
reader.header_line()
try:
    for batch in reader.batches():
        pass
except FrameError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], input=bomb, capture_output=True, check=True)
    assert done.stdout.startswith(b"a row is longer than")

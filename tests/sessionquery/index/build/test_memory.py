"""Peak memory of a whole process that indexes and searches one very large log."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from index_stores import T0, Home, user_message

SEARCH = """
import sys
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.index.search import SearchIndex
from dsh_memory.sessionquery.live import LiveSessions
from dsh_memory.sessionquery.model import EngineOptions
from dsh_memory.sessionquery.store.store import SessionStore

home, path = sys.argv[1:3]
index = SearchIndex(
    EngineOptions(home=home, index_path=path), SessionStore(home), LiveSessions()
)
signal = AbortSignal()
assert index.search_sessions("the", signal=signal).items
assert index.search_events("s", "the", signal=signal).items
index.close()
# Not ru_maxrss: it starts with the size of the parent process.
for line in open("/proc/self/status"):
    if line.startswith("VmHWM:"):
        print(int(line.split()[1]) >> 10)
"""


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status"),
]


def peak_mib(home: Home, index_path: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, str(home.path), str(index_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("zstd", [False, True])
@pytest.mark.parametrize(
    ("text", "most"),
    [("the quick brown fox jumps \n" * 1_900_000, 300), ("the 😀𝒳 \n" * 3_600_000, 900)],
    ids=["ascii", "astral"],
)
def test_one_event_of_fifty_megabytes(
    home: Home, index_path: Path, zstd: bool, text: str, most: int
) -> None:
    home.session("s", text, zstd=zstd)
    assert peak_mib(home, index_path) < most


@pytest.mark.timeout(400)
def test_a_long_log_needs_no_more_than_a_short_one(home: Home, index_path: Path) -> None:
    log = home.session("s", zstd=True)
    chance = random.Random(1)
    words = [f"w{n}" for n in range(5000)]
    pack = zstandard.ZstdCompressor(write_checksum=True, level=1).compress
    seq = size = 0
    with log.path.open("ab") as handle:
        while size < 120_000_000:
            lines = []
            for _ in range(50):
                text = " ".join(chance.choices(words, k=20)) + " the padding" * 150
                lines.append(json.dumps(user_message(seq, text, T0 + seq)) + "\n")
                seq += 1
            batch = "".join(lines).encode()
            size += len(batch)
            handle.write(pack(batch))
    assert peak_mib(home, index_path) < 200

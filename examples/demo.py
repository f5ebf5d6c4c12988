#!/usr/bin/env python3
"""The main job on this machine: search, filter with a local model, write a note, audit the filter.

Starts the stand-in System One server on a free loopback port, runs ``memory-search`` with a
question over the sample DSH home, then ``memory-review`` of the same page, and stops the server.
Everything it writes goes to a directory that is removed at the end. Exits non-zero on any failure.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HOME = HERE / "sample-home"
PHRASE = "database"
QUESTION = "Which database did we choose for the Tidepool ingest service, and why?"
READY_SECONDS = 60


def main() -> int:
    if not HOME.is_dir():
        return complain(f"The sample home is missing: {HOME}")
    with tempfile.TemporaryDirectory(prefix="dsh-memory-demo-") as scratch:
        vault = Path(scratch) / "vault"
        vault.mkdir()
        with stand_in_server() as base_url:
            settings = [
                "jev.model=standin-e5",
                f"jev.base_url={base_url}",
                "jev.context_window=8192",
                f"obsidian.vault_path={vault}",
                f"index.path={Path(scratch) / 'index.sqlite3'}",
            ]
            arguments = ["--home", str(HOME), "--jev", "--obsidian", "--question", QUESTION]
            arguments += [part for value in settings for part in ("--set", value)]
            say(f'memory-search {PHRASE} --question "{QUESTION}"')
            search = memory("search", vault, *arguments, PHRASE)
            say("memory-review of the same page: what the model filtered out")
            review = memory("review", vault, *arguments, PHRASE)
        problems = check(search, review, vault)
        if problems:
            return complain("\n".join(problems))
    say("Done. The vault, its two notes and the index were in a throw-away directory.")
    return 0


def memory(command: str, vault: Path, *arguments: str) -> dict[str, Any]:
    """Show what a person would see, and return the page that the new note holds."""
    known = set(vault.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "dsh_memory.interfaces.cli", command, *arguments], check=False
    )
    if done.returncode:
        raise SystemExit(done.returncode)
    (note,) = set(vault.iterdir()) - known
    fenced = re.findall(r"^(`{3,})json\n(.*?)\n\1$", note.read_text("utf-8"), re.M | re.S)
    page: dict[str, Any] = json.loads(fenced[-1][1])
    jev = page["jev"]
    print(f"\n  -> kept {jev['kept']}, filtered {jev['filtered']} of {jev['reviewed']} hits")
    return page


def check(search: dict[str, Any], review: dict[str, Any], vault: Path) -> list[str]:
    """Return what is wrong; an empty list means that the demonstration showed what it claims."""
    problems = []
    kept = {hit["session_id"] for hit in search["results"]}
    filtered = {hit["session_id"] for hit in review["results"]}
    if "tp-0002-storage-decision" not in kept:
        problems.append("The session with the decision was not kept.")
    if not filtered:
        problems.append("Nothing was filtered out.")
    if kept & filtered:
        problems.append(f"Both kept and filtered: {sorted(kept & filtered)}")
    if len(list(vault.glob("*.md"))) != 2:
        problems.append("There should be exactly two notes.")
    return problems


@contextlib.contextmanager
def stand_in_server() -> Iterator[str]:
    """Run ``dsh-memory standin`` on a free port and yield its base URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dsh_memory.interfaces.cli", "standin", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", ready)
        if not found:
            raise SystemExit(complain(f"The stand-in server did not start: {ready!r}"))
        yield found.group()
    finally:
        process.terminate()
        process.wait(timeout=READY_SECONDS)


def say(text: str) -> None:
    print(f"\n== {text}\n", flush=True)


def complain(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

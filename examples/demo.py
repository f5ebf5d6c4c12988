#!/usr/bin/env python3
"""The main job on this machine: search, filter with a local model, write a note, audit the filter.

Starts the stand-in System One server on a free loopback port, runs ``memory-search`` with a
question over the sample DSH home, then ``memory-review`` of the same page, and stops the server.
Everything it writes goes to a directory that is removed at the end. Exits non-zero on any failure.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

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
            common = ["--home", str(HOME), "--jev", "--obsidian", "--question", QUESTION]
            common += [part for value in settings for part in ("--set", value)]
            say(f'memory-search {PHRASE} --question "{QUESTION}"')
            search = memory("search", *common, PHRASE)
            say("memory-review: the same page, what the model filtered out")
            review = memory("review", *common, PHRASE)
        problems = check(search, review, vault)
        if problems:
            return complain("\n".join(problems))
        notes = sorted(path.name for path in vault.iterdir())
        say(f"Both pages are notes in the (throw-away) vault: {', '.join(notes)}")
    return 0


def memory(command: str, *arguments: str) -> dict[str, object]:
    """Show what a person would see, then return the same request's page as data."""
    environment = {**os.environ, "PYTHONUTF8": "1"}
    base = [sys.executable, "-m", "interfaces.cli", command]
    person = subprocess.run([*base, *arguments], env=environment, check=False)
    if person.returncode:
        raise SystemExit(person.returncode)
    data = subprocess.run(
        [*base, "--json", *arguments, "--no-obsidian"],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
    )
    page = json.loads(data.stdout)
    jev = page["jev"]
    print(f"\n  -> kept {jev['kept']}, filtered {jev['filtered']} of {jev['reviewed']} hits")
    return dict(page)


def check(search: dict[str, object], review: dict[str, object], vault: Path) -> list[str]:
    """Return what is wrong; an empty list means that the demonstration showed what it claims."""
    problems = []
    kept = {hit["session_id"] for hit in search["results"]}  # type: ignore[attr-defined]
    filtered = {hit["session_id"] for hit in review["results"]}  # type: ignore[attr-defined]
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
        [sys.executable, "-m", "interfaces.cli", "standin", "--port", "0"],
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

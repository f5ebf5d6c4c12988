#!/usr/bin/env python3
"""Ask the real engine: run.py HOME REQUESTS.jsonl ANSWERS.jsonl [--profile NAME] [--never]

HOME is never written; a scratch copy of HOME/sessions is used. Linux x86-64 only.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import dsh


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("requests", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--profile", choices=("sdk", "sdk-minimal"), help="default: by encoding")
    parser.add_argument("--never", action="store_true", help="leave the search index off")
    arguments = parser.parse_args()
    run = dsh.run_files(
        arguments.home,
        arguments.requests,
        arguments.answers,
        profile=arguments.profile,
        open_at="never" if arguments.never else "first-search",
    )
    print(f"status {run.status}, {run.wall:.2f} s", file=sys.stderr)
    if run.status != 0:
        print(run.log[-3000:], file=sys.stderr)
    return 0 if run.status == 0 else 1


if __name__ == "__main__":
    sys.exit(main())

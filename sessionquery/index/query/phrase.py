"""The query as FTS5 sees it: its tokens, how its instances can overlap, where they stand in a text.

All tokenizing is done by SQLite itself, in a small database in memory, so that it always agrees
with the index.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dsh_memory.sessionquery.index.file.schema import PAGE_SIZE

MARK: Final = "\ufdd0"
"""Stands before a match in marked text; documents and queries never contain it."""

_REPLACED = re.compile("[\0\ufdd0\ufdd1]")
_SEPARATOR = re.compile(r"[\s!-/:;<=>?@\[\\\]^_`{|}~]", re.ASCII)
_ASCII_TOKEN = re.compile(r"[0-9A-Za-z]+")
_FIRST_REACH: Final = 1 << 10


def searchable(text: str) -> str:
    """Replace U+0000, U+FDD0 and U+FDD1 by U+FFFD, as in every document and query."""
    if text.isascii():
        return text.replace("\0", "\ufffd") if "\0" in text else text
    return _REPLACED.sub("\ufffd", text)


def quote(text: str) -> str:
    """Write `text` as one FTS5 phrase; no operator in it has a meaning."""
    return '"' + text.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Phrase:
    """A query phrase.

    Attributes:
        expression: The FTS5 expression that matches it.
        tokens: Folded tokens; without any nothing matches.
        overlap: None when two instances can never overlap. Else an expression that matches where
            an instance overlaps the next one, so that runs = instances - overlaps; the empty
            string when no single expression tells that.
    """

    expression: str
    tokens: tuple[str, ...]
    overlap: str | None

    def first_in_ascii(self, text: str) -> int | None:
        """Return where the first instance starts in a text of nothing but ASCII, None without one.

        There the tokens are plainly the runs of letters and digits.
        """
        if not all(token.isascii() for token in self.tokens):
            return None
        pattern = "[^0-9a-z]+".join(self.tokens) + "(?![0-9a-z])"
        lower = text.lower()
        for match in re.finditer(pattern, lower):
            start = match.start()
            if start == 0 or not lower[start - 1].isalnum():
                return start
        return None

    def runs_in(self, tokens: list[str]) -> int:
        """Count highlighted runs in a tokenized text: instances that overlap are one run."""
        wanted = list(self.tokens)
        size = len(wanted)
        first = wanted[0]
        runs = 0
        end = 0
        for start in range(len(tokens) - size + 1):
            if tokens[start] == first and tokens[start : start + size] == wanted:
                if start >= end:
                    runs += 1
                end = start + size
        return runs


class Tokenizer:
    """Answers questions about single texts with an FTS5 table in memory.

    Usable from any one thread at a time.
    """

    def __init__(self) -> None:
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        self._connection.execute(
            "CREATE VIRTUAL TABLE scratch USING fts5(text, tokenize='unicode61')"
        )
        self._connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(scratch, instance)")

    def close(self) -> None:
        self._connection.close()

    def interrupt(self) -> None:
        self._connection.interrupt()

    def tokens(self, text: str) -> list[str]:
        """Return the folded tokens of `text` in order."""
        if text.isascii():
            return [token.lower() for token in _ASCII_TOKEN.findall(text)]
        run = self._connection.execute
        run("BEGIN")
        try:
            run("INSERT INTO scratch(rowid, text) VALUES(1, ?)", (text,))
            return [term for (term,) in run("SELECT term FROM terms ORDER BY offset")]
        finally:
            run("ROLLBACK")

    def phrase(self, query: str) -> Phrase:
        """Analyse a normalized query (`searchable`)."""
        tokens = tuple(self.tokens(query))
        return Phrase(quote(query), tokens, self._overlap(tokens))

    def _overlap(self, tokens: tuple[str, ...]) -> str | None:
        size = len(tokens)
        periods = [shift for shift in range(1, size) if tokens[shift:] == tokens[: size - shift]]
        if not periods:
            return None
        shortest = periods[0]
        if any(period % shortest for period in periods):
            return ""
        # Every overlap then implies one at the shortest distance.
        doubled = tokens[:shortest] + tokens
        text = " ".join(doubled)
        return quote(text) if tuple(self.tokens(text)) == doubled else ""

    def first_matches(self, phrase: Phrase, texts: Mapping[int, str]) -> dict[int, int]:
        """Return where the first token of the first match stands in each text.

        Only as much of a text is looked at as is needed: highlighting costs time quadratic in the
        number of matches.

        Args:
            phrase: A phrase with tokens.
            texts: By any number.

        Returns:
            Offsets in code points; texts without a match are left out.
        """
        out: dict[int, int] = {}
        pending = dict(texts)
        reach = _FIRST_REACH
        while pending:
            heads = {key: _head(text, reach) for key, text in pending.items()}
            others: list[tuple[int, str]] = []
            for key, head in heads.items():
                if not head.isascii():
                    others.append((key, head))
                elif (place := phrase.first_in_ascii(head)) is not None:
                    out[key] = place
            if others:
                out.update(self._marked(phrase.expression, others))
            pending = {
                key: text
                for key, text in pending.items()
                if key not in out and len(heads[key]) < len(text)
            }
            reach *= 8
        return out

    def _marked(self, expression: str, texts: Iterable[tuple[int, str]]) -> list[tuple[int, int]]:
        run = self._connection.execute
        run("BEGIN")
        try:
            self._connection.executemany("INSERT INTO scratch(rowid, text) VALUES(?, ?)", texts)
            return run(
                "SELECT rowid, instr(highlight(scratch, 0, :mark, ''), :mark) - 1"
                " FROM scratch WHERE scratch MATCH :phrase",
                {"mark": MARK, "phrase": expression},
            ).fetchall()
        finally:
            run("ROLLBACK")


def _head(text: str, reach: int) -> str:
    """Return a part from the start of `text` that ends where a token cannot go on."""
    if len(text) <= reach:
        return text
    for match in _SEPARATOR.finditer(text, reach, 2 * reach):
        return text[: match.start()]
    return text

from __future__ import annotations

import sqlite3

from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.index.file.database import open_memory
from dsh_memory.sessionquery.index.file.location import MEMORY, locate_index
from dsh_memory.sessionquery.index.file.schema import TYPE_NUMBERS
from dsh_memory.sessionquery.index.query.matching import Scope, find_matches
from dsh_memory.sessionquery.index.query.phrase import MARK, Tokenizer, quote, searchable
from hypothesis import given, settings
from hypothesis import strategies as st

WORDS = ["newt", "the", "a", "b", "café", "CAFÉ", "数据", "x\u200dy", "😀", "don't", "-", "a.b"]
words = st.sampled_from(WORDS)
texts = st.lists(words, min_size=1, max_size=30).map(" ".join)
queries = st.lists(words, min_size=1, max_size=6).map(" ".join)


def highlighted(documents: list[str], query: str) -> dict[int, tuple[int, int]]:
    """Count runs, and find the first one, with SQLite's own ``highlight()``."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE plain USING fts5(text, tokenize='unicode61')")
    connection.executemany("INSERT INTO plain(rowid, text) VALUES(?, ?)", enumerate(documents))
    rows = connection.execute(
        "SELECT rowid, highlight(plain, 0, ?, '') FROM plain WHERE plain MATCH ?",
        (MARK, quote(query)),
    ).fetchall()
    connection.close()
    return {number: (text.count(MARK), text.index(MARK)) for number, text in rows}


def counted(documents: list[str], query: str) -> dict[int, tuple[int, int]]:
    """The same with the index's own way of counting."""
    database = open_memory(locate_index("", MEMORY))
    tokenizer = Tokenizer()
    try:
        run = database.connection.execute
        for number, text in enumerate(documents):
            run(
                "INSERT INTO docs VALUES(?, ?, 1, 0, ?, 0, NULL, x'', NULL)",
                (number, TYPE_NUMBERS["user/message"], len(text)),
            )
            run("INSERT INTO texts VALUES(?, ?)", (number, text))
            run("INSERT INTO fts(rowid, text) VALUES(?, ?)", (number, text))
        phrase = tokenizer.phrase(query)
        rows = find_matches(database.connection, tokenizer, phrase, Scope(), signal=AbortSignal())
        counts = {number: count for number, count, _, _ in rows}
        places = tokenizer.first_matches(phrase, {number: documents[number] for number in counts})
        return {number: (count, places[number]) for number, count in counts.items()}
    finally:
        tokenizer.close()
        database.close()


@given(st.lists(texts, min_size=1, max_size=6), queries)
@settings(max_examples=150, deadline=None)
def test_counts_and_places_are_those_of_highlight(documents: list[str], query: str) -> None:
    assert counted(documents, query) == highlighted(documents, query)


@given(st.lists(st.sampled_from("ab"), min_size=3, max_size=60), st.integers(2, 7), st.data())
@settings(max_examples=150, deadline=None)
def test_overlapping_instances_are_one_run(
    letters: list[str], size: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, max(0, len(letters) - size)))
    query = " ".join(letters[start : start + size])
    document = " ".join(letters)
    assert counted([document, "a", "b b"], query) == highlighted([document, "a", "b b"], query)


def test_a_store_whose_documents_average_three_tokens_counts_by_text() -> None:
    # There the ranking function gives the same weight whatever the count.
    documents = ["newt newt newt newt", "newt x"]
    assert counted(documents, "newt") == {0: (4, 0), 1: (1, 0)}


def test_very_many_matches_in_one_document_are_counted_exactly() -> None:
    documents = ["the " * 300_000, "the"]
    assert counted(documents, "the") == {0: (300_000, 0), 1: (1, 0)}
    assert counted(documents, "the the")[0] == (1, 0)


def test_a_first_match_far_into_a_text_without_blanks_is_found() -> None:
    documents = ["数" * 50_000 + " needle", "x" * 9000 + "-needle"]
    assert counted(documents, "needle") == {0: (1, 50_001), 1: (1, 9001)}


@given(st.text(max_size=40))
def test_marks_never_survive_in_searched_text(text: str) -> None:
    assert not {"\0", "\ufdd0", "\ufdd1"} & set(searchable(text))
    assert len(searchable(text)) == len(text)


def test_a_query_without_tokens_matches_nothing() -> None:
    assert counted(["--- * 😀"], "---") == {}


@given(st.lists(texts, min_size=1, max_size=8), queries)
@settings(max_examples=60, deadline=None)
def test_counts_in_an_unknown_unit_have_the_same_order(documents: list[str], query: str) -> None:
    database = open_memory(locate_index("", MEMORY))
    tokenizer = Tokenizer()
    try:
        run = database.connection.execute
        for number, text in enumerate(documents):
            run("INSERT INTO docs VALUES(?, 0, 1, 0, 1, 0, NULL, x'', NULL)", (number,))
            run("INSERT INTO texts VALUES(?, ?)", (number, text))
            run("INSERT INTO fts(rowid, text) VALUES(?, ?)", (number, text))
        true, free = (
            [
                row[1]
                for row in find_matches(
                    database.connection,
                    tokenizer,
                    tokenizer.phrase(query),
                    Scope(),
                    comparable=comparable,
                    signal=AbortSignal(),
                )
            ]
            for comparable in (True, False)
        )
    finally:
        tokenizer.close()
        database.close()
    assert len(true) == len(free)
    pairs = list(zip(true, free, strict=True))
    for count, weight in pairs:
        for other_count, other_weight in pairs:
            assert (count < other_count) == (weight < other_weight)
            assert (count == other_count) == (weight == other_weight)

"""The index file's tables, and the numbers that stand for names in them.

The text of each document is stored once, beside a contentless FTS5 table. Contentless with
``columnsize=0`` is not only smaller: the ranking function then sees the same length for every
document, which is what makes exact counting with it possible (`sessionquery.index.query.counting`).
"""

from __future__ import annotations

import sqlite3
from typing import Final

from dsh_memory.sessionquery.model.sessions import Surface

INDEX_VERSION: Final = 1
"""Raise it with every change of the tables below, of the text extraction, or of what logs can be
read (the index remembers which ones cannot): files of another version are left alone."""

APPLICATION_ID: Final = 0x44534D51
"""Marks a database file as ours (SQLite's ``application_id``)."""

PAGE_SIZE: Final = 8192

SEQ_BITS: Final = 32
"""A document's id is ``log id << SEQ_BITS | seq``: its log is known without a look-up."""

SEQ_MASK: Final = (1 << SEQ_BITS) - 1

DOCUMENT_TYPES: Final = (
    "user/message",
    "assistant/message",
    "tool/result",
    "tool/call",
    "todo/write",
    "turn/end",
)
"""Event types that can have text; a type's number is its position."""

TYPE_NUMBERS: Final = {name: number for number, name in enumerate(DOCUMENT_TYPES)}

SURFACES: Final[tuple[Surface, ...]] = ("log-only", "current", "shadowed")
"""A surface's number is its position."""

SURFACE_NUMBERS: Final = {name: number for number, name in enumerate(SURFACES)}

_TABLES: Final = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE logs(
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL, directory TEXT NOT NULL, name TEXT NOT NULL, encoding TEXT NOT NULL,
    generation INTEGER NOT NULL, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    read_at_ns INTEGER NOT NULL, bytes_hash BLOB, family BLOB,
    session_id TEXT, created_at INTEGER, is_seeded INTEGER, delegation_depth INTEGER, cwd TEXT,
    parent_session TEXT, origin TEXT, agent_preset TEXT, problem TEXT, reason TEXT,
    failure_code TEXT, failure TEXT,
    row_count INTEGER NOT NULL, oldest INTEGER, newest INTEGER, content BLOB NOT NULL,
    UNIQUE(project, directory)
);
CREATE TABLE row_times(log INTEGER PRIMARY KEY, times BLOB NOT NULL);
CREATE TABLE docs(
    id INTEGER PRIMARY KEY,
    type INTEGER NOT NULL, surface INTEGER NOT NULL, time INTEGER NOT NULL,
    length INTEGER NOT NULL, closing INTEGER NOT NULL, shadowed_at INTEGER, hash BLOB NOT NULL,
    tools TEXT
);
CREATE TABLE texts(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE directories(
    path TEXT PRIMARY KEY,
    mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    listed_at_ns INTEGER NOT NULL, names TEXT NOT NULL, strays TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIRTUAL TABLE fts USING fts5(text, content='', columnsize=0, tokenize='unicode61');
"""

OUR_TABLES: Final = frozenset(
    [
        "meta",
        "logs",
        "row_times",
        "docs",
        "texts",
        "directories",
        "fts",
        "fts_data",
        "fts_idx",
        "fts_config",
    ]
)


def create_tables(connection: sqlite3.Connection, *, home: str) -> None:
    """Fill an empty database. The caller has opened a write transaction."""
    for statement in _TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    # Leaf pages of the term index as large as a page holds.
    connection.execute("INSERT INTO fts(fts, rank) VALUES('pgsz', ?)", (PAGE_SIZE - 100,))
    connection.executemany(
        "INSERT INTO meta VALUES(?, ?)",
        [("home", home), ("version", INDEX_VERSION), ("change", 0)],
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {INDEX_VERSION}")

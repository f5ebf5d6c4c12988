"""Words and blanks that searching, folding and cutting have to get right."""

from __future__ import annotations

import random

WORDS = [
    "the",
    "a",
    "of",
    "database",
    "Database",
    "pool",
    "index",
    "cache",
    "error",
    "test",
    "file",
    "build",
    "café",
    "CAFÉ",
    "naïve",
    "straße",
    "STRASSE",
    "ẞ",
    "ﬁne",
    "İstanbul",
    "ıspanak",
    "ΣΊΣΥΦΟΣ",
    "σίσυφος",
    "Kelvin",
    "snake_case",
    "kebab-case",
    "foo.bar()",
    "C++",
    "x/y/z",
    "don't",
    "3.14",
    "newt",
    "newt",
    "newt",
    "数据库",
    "连接池",
    "数据库连接池",
    "検索設定",
    "テスト",
    "검색",
    "👩\u200d💻",
    "🚀",
    "✅️",
    "qux",
    "AI",
    "BRAID",
    "OR",
    "NEAR",
    "NOT",
    "*",
    '"quoted"',
    "---",
    "…",
    "éclair",
    "﷽",
    "\ufdd0",
    "\u200b",
    "zero",
]
BLANKS = (
    " ",
    " ",
    " ",
    " ",
    "\n",
    "\t",
    "  ",
    "\u00a0",
    "\u3000",
    "\ufeff",
    "\u2028",
    "\r\n",
    "\x1c",
)


def text(rng: random.Random, mean: int) -> str:
    """Return about `mean` words of awkward text."""
    parts: list[str] = []
    for _ in range(rng.randint(1, 2 * mean)):
        parts.append(rng.choice(WORDS))
        parts.append(rng.choice(BLANKS))
    return "".join(parts)

"""The order of session ids with equal creation times: JavaScript's ``localeCompare``.

That is the root collation of CLDR: punctuation, digits, letters; accents decide after all letters,
case after all accents. Written down here for ASCII and Latin-1; any other character sorts behind
these by code point.
"""

from __future__ import annotations

from typing import Final

SortKey = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], str]

_PRIMARY_ORDER: Final = (
    "\t\n\v\f\r\u0085 _-,;:!¡?¿.·'\"«»()[]{}§¶@*/\\&#%`´^¯¨¸°©®+±÷×<=>¬|¦~¤¢$£¥"
    "0123456789abcdefghijklmnopqrstuvwxyzþµ"
)
_FRACTION_SLASH: Final = "\u2044"
_COMMON: Final = 1
_ACCENTS: Final = {
    name: weight
    for weight, name in enumerate(
        (
            "acute",
            "grave",
            "circumflex",
            "ring",
            "diaeresis",
            "tilde",
            "cedilla",
            "stroke",
            "joined",
        ),
        start=2,
    )
}
_ACCENTED: Final = {
    "acute": "aáeéiíoóuúyý",
    "grave": "aàeèiìoòuù",
    "circumflex": "aâeêiîoôuû",
    "ring": "aå",
    "diaeresis": "aäeëiïoöuüyÿ",
    "tilde": "aãnñoõ",
    "cedilla": "cç",
    "stroke": "oødð",
}
_LOWER, _UPPER, _RAISED = 1, 2, 3

Element = tuple[int, int, int]
"""Primary, secondary and tertiary weight; 0 is "ignored on this level"."""


def _elements() -> dict[str, tuple[Element, ...]]:
    primary = {character: weight for weight, character in enumerate(_PRIMARY_ORDER, start=2)}
    # The fraction slash stands among the symbols, below every digit.
    primary[_FRACTION_SLASH] = primary["0"]
    for character in "0123456789abcdefghijklmnopqrstuvwxyzþµ":
        primary[character] += 1

    def plain(character: str, tertiary: int = _LOWER) -> Element:
        return primary[character], _COMMON, tertiary

    def accent(name: str) -> Element:
        return 0, _ACCENTS[name], _LOWER

    out: dict[str, tuple[Element, ...]] = {
        character: (plain(character),) for character in _PRIMARY_ORDER
    }
    out.update({chr(code): () for code in (*range(0x20), *range(0x7F, 0xA0), 0xAD)} | out)
    for letter in "abcdefghijklmnopqrstuvwxyzþ":
        out[letter.upper()] = (plain(letter, _UPPER),)
    for name, pairs in _ACCENTED.items():
        for base, accented in zip(pairs[::2], pairs[1::2], strict=True):
            out[accented] = (plain(base), accent(name))
            if len(accented.upper()) == 1 and accented.upper() <= "\xff":
                out[accented.upper()] = (plain(base, _UPPER), accent(name))
    out["\xa0"] = (plain(" ", _RAISED),)
    for raised, base in zip("ªº¹²³", "ao123", strict=True):
        out[raised] = (plain(base, _RAISED),)
    for fraction, digits in {"½": "12", "¼": "14", "¾": "34"}.items():
        parts = (digits[0], _FRACTION_SLASH, digits[1])
        out[fraction] = tuple(plain(part, _RAISED) for part in parts)
    out["æ"] = (plain("a"), accent("joined"), plain("e"))
    out["Æ"] = (plain("a", _UPPER), accent("joined"), plain("e", _UPPER))
    out["ß"] = (plain("s"), accent("joined"), plain("s"))
    return out


_ELEMENTS: Final = _elements()
_BEYOND: Final = 1000
"""Primary weights of characters that the table lacks start here."""


def id_sort_key(session_id: str) -> SortKey:
    """Return a key that sorts ids as ``localeCompare`` does; equal ids only have equal keys."""
    elements: list[Element] = []
    for character in session_id:
        known = _ELEMENTS.get(character)
        if known is None:
            elements.append((_BEYOND + ord(character), _COMMON, _LOWER))
        else:
            elements.extend(known)
    return (
        tuple(primary for primary, _, _ in elements if primary),
        tuple(secondary for _, secondary, _ in elements if secondary),
        tuple(tertiary for _, _, tertiary in elements if tertiary),
        session_id,
    )

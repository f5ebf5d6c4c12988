"""Cursors: opaque, small, and valid in any process.

A cursor holds hashes and numbers only, never the request or any history. It is bound to the
normalized request by a fingerprint and to the corpus by a digest of its contents, not to an index
file: rebuilding or deleting the index changes nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from dsh_memory.sessionquery.errors import INVALID_CURSOR, STALE_CURSOR, SessionQueryError
from dsh_memory.sessionquery.model.sessions import SessionHeader

Scope = Literal["sessions", "events"]

DIGEST_BYTES: Final = 16
_FINGERPRINT_BYTES: Final = 12
_CHECK_BYTES: Final = 6
_SCOPES: Final[tuple[Scope, Scope]] = ("sessions", "events")
_LAYOUT: Final = struct.Struct(f"<BB{_FINGERPRINT_BYTES}sq{DIGEST_BYTES}sI")
_DOCUMENT: Final = struct.Struct("<qBq8s")
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next page starts, and in which corpus.

    Attributes:
        scope: Which search it continues.
        fingerprint: Of the normalized request.
        as_of: For `sessions`: later rows (ms since the epoch) do not count. 0 for `events`.
        digest: Of the corpus up to `as_of`, or of the one session.
        offset: How many rows the earlier pages had.
    """

    scope: Scope
    fingerprint: bytes
    as_of: int
    digest: bytes
    offset: int

    def encode(self) -> str:
        payload = _LAYOUT.pack(
            _VERSION,
            _SCOPES.index(self.scope),
            self.fingerprint,
            self.as_of,
            self.digest,
            self.offset,
        )
        return base64.urlsafe_b64encode(payload + _check(payload)).decode("ascii").rstrip("=")


def decode_cursor(text: str, *, scope: Scope, fingerprint: bytes) -> Cursor:
    """Decode a cursor and make sure that it belongs to this request.

    Raises:
        SessionQueryError: ``INVALID_CURSOR``.
    """
    try:
        data = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (UnicodeEncodeError, binascii.Error, ValueError) as error:
        raise _invalid("it is not one of this program's cursors") from error
    payload = data[: _LAYOUT.size]
    if len(data) != _LAYOUT.size + _CHECK_BYTES or data[_LAYOUT.size :] != _check(payload):
        raise _invalid("it is not one of this program's cursors")
    version, scope_number, found, as_of, digest, offset = _LAYOUT.unpack(payload)
    if version != _VERSION or scope_number >= len(_SCOPES) or not offset:
        raise _invalid("it is not one of this program's cursors")
    cursor = Cursor(_SCOPES[scope_number], found, as_of, digest, offset)
    if cursor.encode() != text:
        raise _invalid("it is not one of this program's cursors")
    if cursor.scope != scope or cursor.fingerprint != fingerprint:
        raise _invalid("it belongs to another request (query, scope, filters and limit must agree)")
    return cursor


def stale_cursor() -> SessionQueryError:
    return SessionQueryError(
        "The cursor is stale: the sessions that it refers to changed since the first page.",
        code=STALE_CURSOR,
        hint="Start again without a cursor.",
    )


def request_fingerprint(request: object) -> bytes:
    """Return the fingerprint of a normalized request (JSON)."""
    text = json.dumps(request, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode("ascii"), digest_size=_FINGERPRINT_BYTES).digest()


pack_document = _DOCUMENT.pack
"""Write ``seq, type number, time (ms), text hash`` of a document for `session_digest`."""

PACKED_DOCUMENT: Final = _DOCUMENT.size
"""Bytes of one packed document."""


def session_digest(
    header: SessionHeader, row_count: int, documents: bytes | bytearray | memoryview
) -> bytes:
    """Return what identifies a session's log up to some moment, by its content.

    Args:
        header: Its header.
        row_count: How many of its rows belong to that time.
        documents: Those rows that have text, in order, each packed by `pack_document`.
    """
    identity = (
        header.id,
        header.created_at,
        header.is_seeded,
        header.delegation_depth,
        header.cwd,
        header.parent_session,
        header.origin,
        header.agent_preset,
        row_count,
    )
    digest = hashlib.blake2b(json.dumps(identity).encode("ascii"), digest_size=DIGEST_BYTES)
    digest.update(documents)
    return digest.digest()


def corpus_digest(sessions: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the digest of ``(session id, session digest)`` pairs, in any order."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    parts: list[bytes] = []
    for session_id, content in sorted(sessions):
        name = session_id.encode("utf-8", "surrogatepass")
        parts += (len(name).to_bytes(4, "little"), name, content)
    digest.update(b"".join(parts))
    return digest.digest()


def _check(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_CHECK_BYTES, person=b"cursor").digest()


def _invalid(why: str) -> SessionQueryError:
    return SessionQueryError(
        f"The cursor is invalid: {why}.",
        code=INVALID_CURSOR,
        hint="Repeat exactly the arguments of the page that gave the cursor, or start without one.",
    )

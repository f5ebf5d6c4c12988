"""Who calls, and which sessions that caller may inspect (documents 002 and 004)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dsh_memory.pipeline.shared.engine_port import MemoryEngine
from dsh_memory.pipeline.shared.errors import RequestError, clipped
from dsh_memory.sessionquery.abort import AbortSignal
from dsh_memory.sessionquery.errors import SESSION_NOT_FOUND, SessionQueryError
from dsh_memory.sessionquery.model.sessions import SessionHeader

CALLER_REQUIRED: Final = "REQUEST_CALLER_REQUIRED"
"""The server was started without anything that says who calls."""

OUTSIDE: Final = "REQUEST_OUTSIDE_WORKSPACE"
"""The session is unknown or was recorded in another directory; which of both is not told."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The calling agent, as the server was told at its start; a server cannot know it otherwise.

    Attributes:
        cwd: Its directory, compared exactly with recorded ones.
        session_id: Its own session.
    """

    cwd: str | None = None
    session_id: str | None = None

    def require(self) -> None:
        """Refuse a caller of whom nothing is known.

        Raises:
            RequestError: ``REQUEST_CALLER_REQUIRED``.
        """
        if self.cwd is None and self.session_id is None:
            raise RequestError(
                "The server does not know the calling agent, so it shows no session.",
                code=CALLER_REQUIRED,
                hint="Start it with --cwd DIR (the agent's directory; . is the current one) "
                "and, if known, --caller-session ID.",
            )

    def may_see(self, header: SessionHeader) -> bool:
        """Whether the session is the caller's own or of exactly the caller's directory."""
        if self.session_id is not None and header.id == self.session_id:
            return True
        return self.cwd is not None and header.cwd == self.cwd

    async def authorize(
        self, engine: MemoryEngine, session_id: str, *, signal: AbortSignal | None = None
    ) -> None:
        """Refuse a session that the caller may not see, by its authoritative header.

        Raises:
            RequestError: ``REQUEST_OUTSIDE_WORKSPACE``, also for an unknown session.
        """
        if session_id == self.session_id:
            return
        if self.cwd is None:
            raise outside(session_id)
        try:
            header = await engine.read_header(session_id, signal=signal)
        except SessionQueryError as error:
            if error.code != SESSION_NOT_FOUND:
                raise
            raise outside(session_id) from None
        if not self.may_see(header):
            raise outside(session_id)


def outside(session_id: str) -> RequestError:
    """The refusal of a session outside the caller's workspace."""
    return RequestError(
        f"Session {clipped(session_id, 100)!r} is unknown or outside the caller's directory.",
        code=OUTSIDE,
        hint="Only sessions recorded in exactly that directory are visible; search for them first.",
    )

"""Results are closed models: no field that is not declared."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Closed(BaseModel):
    """A result part: unknown fields are refused, an optional field is set only if it exists."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; fields that were not set are left out."""
        return self.model_dump(mode="json", exclude_unset=True)


class UnreadableSessionReport(Closed):
    """A session that the search left out because its log cannot be read."""

    path: str
    code: str
    reason: str
    session_id: str | None = None

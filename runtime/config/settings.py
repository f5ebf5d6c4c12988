"""The settings as one strict, immutable model; every entry is validated by it.

Field descriptions are the meanings printed in ``docs/configuration.md`` and shown by the
configuration page. Rules that concern one value live on the field; rules between fields live on
`Settings`, so that one value can be judged without the rest.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from dsh_memory.runtime.errors import ConfigError
from dsh_memory.runtime.loopback import normalize_base_url
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

MODEL_NAME_UNITS = 200
CONTEXT_WINDOW_MINIMUM = 1024
CONTEXT_WINDOW_MAXIMUM = 1_048_576


def _whole_number(value: object) -> object:
    # A whole float is an integer (as in the documents' program); true, "20" and 20.5 are none.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _absolute_path(value: object) -> object:
    if not isinstance(value, str):
        return value
    if "\0" in value:
        raise PydanticCustomError("path", "a path cannot contain a NUL character")
    if value.startswith("~"):
        raise PydanticCustomError("path", "must be an absolute path; ~ is not expanded here")
    if not value.startswith("/"):
        raise PydanticCustomError("path", "must be an absolute path (starting with /)")
    return value


def _index_path(value: object) -> object:
    return value if value == ":memory:" else _absolute_path(value)


def _model_name(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not value.strip():
        raise PydanticCustomError("model", "must name a model; it is empty")
    if value != value.strip() or not value.isprintable():
        raise PydanticCustomError(
            "model", "must not start or end with white space or contain control characters"
        )
    if len(value.encode("utf-16-le", "surrogatepass")) // 2 > MODEL_NAME_UNITS:
        raise PydanticCustomError("model", "must be at most 200 characters long")
    if re.search(r"[:-]cloud(?::latest)?$", value.lower()):
        raise PydanticCustomError(
            "model",
            "names a cloud model, which a local server may forward to a remote one; "
            "only local models are used",
        )
    return value


def _base_url(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return normalize_base_url(value)
    except ConfigError as error:
        raise PydanticCustomError(
            "base_url", "{reason}", {"reason": error.message, "hint": error.hint}
        ) from None


Integer = Annotated[int, BeforeValidator(_whole_number)]
ContextWindow = Annotated[
    int,
    Field(ge=CONTEXT_WINDOW_MINIMUM, le=CONTEXT_WINDOW_MAXIMUM),
    BeforeValidator(_whole_number),
]
AbsolutePath = Annotated[str, BeforeValidator(_absolute_path)]
IndexPath = Annotated[str, BeforeValidator(_index_path)]
ModelName = Annotated[str, BeforeValidator(_model_name), Field(min_length=1)]
BaseUrl = Annotated[str, BeforeValidator(_base_url)]


class Section(BaseModel):
    """What all groups of settings share: no coercion, no unknown keys, no change after reading."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", validate_default=False, allow_inf_nan=False
    )


class StoreSettings(Section):
    """Where the DSH home is, and what an unreadable session does to a search."""

    home: AbsolutePath | None = Field(
        None, description="The DSH home. Unset: $DSH_HOME, else ~/.dsh."
    )
    unreadable: Literal["fail", "skip"] = Field(
        "fail",
        description="What a corrupt session log does to a search over the whole store: fail it, "
        "or skip the session and say so in every result.",
    )


class IndexSettings(Section):
    """The derived full-text index (document 002)."""

    path: IndexPath | None = Field(
        None,
        description="The index file, or :memory: for one that is never written to disk. "
        "Unset: one file a home in the user's cache directory. It holds history text.",
    )
    open_at: Literal["startup", "first-search", "never"] = Field(
        "first-search",
        description="When the index is opened; never turns full-text search off, "
        "reads and traces keep working.",
    )
    default_limit: Integer = Field(
        20, ge=1, le=1000, description="Page size of an engine search that states no limit."
    )
    max_limit: Integer = Field(
        100, ge=1, le=1000, description="Largest page size that the engine accepts."
    )
    snippet_chars: Integer = Field(
        240, ge=1, le=10_000, description="Longest snippet, in Unicode code points."
    )
    read_window_max: Integer = Field(
        50, ge=1, le=1000, description="Most events before or after the target of one read."
    )
    inspect_concurrency: Integer = Field(
        4, ge=1, le=64, description="How many session logs are inspected at once."
    )


class SearchSettings(Section):
    """What a memory search leaves out."""

    exclude_echoes: bool = Field(
        False,
        description="Leave out (and count) hits that are calls or results of this program's own "
        "tools.",
    )


class JevSettings(Section):
    """Local Jev: relevance filtering by a System One model on this machine (document 003)."""

    enabled: bool = Field(False, description="Filter the hits of a search by relevance.")
    model: ModelName = Field(
        "nimble", max_length=MODEL_NAME_UNITS, description="Name of the local decision model."
    )
    base_url: BaseUrl = Field(
        "http://127.0.0.1:11434",
        description="HTTP root of the local server: 127.0.0.1, localhost or [::1] only.",
    )
    manage_ollama: bool = Field(
        False,
        description="Start Ollama when nothing listens there, check it, pull the model if it is "
        "missing, and stop what was started.",
    )
    context_window: ContextWindow | None = Field(
        None,
        description="Context window in tokens; required when Jev is enabled and Ollama is not "
        "managed, otherwise a cap on what the model declares.",
    )
    load_timeout: float = Field(
        300.0,
        gt=0,
        le=3600,
        description="Managed Ollama: seconds that loading the model may take, and that a pull may "
        "stay silent.",
    )


class ObsidianSettings(Section):
    """Notes of completed search and review pages (document 003)."""

    enabled: bool = Field(False, description="Write one note for each completed page.")
    vault_path: AbsolutePath | None = Field(
        None, description="An existing vault directory; required when notes are enabled."
    )


class RecallSettings(Section):
    """The tool ``recall`` (document 004)."""

    allow_all_projects: bool = Field(True, description="Honour the tool's all_projects argument.")
    default_limit: Integer = Field(5, ge=1, le=10, description="Page size without a limit.")
    max_limit: Integer = Field(10, ge=1, le=25, description="Largest accepted page size.")
    cjk_hint: bool = Field(
        True, description="Explain Chinese, Japanese or Korean zero-hit results."
    )
    cjk_fallback: bool = Field(
        True, description="Scan session text for the exact words when such a search has no hit."
    )
    cjk_fallback_scan_max: Integer = Field(
        50, ge=1, le=500, description="Most sessions that one such scan reads."
    )
    exclude_echoes: bool = Field(
        True,
        description="As search.exclude_echoes, for recall.",
    )


class Settings(Section):
    """All effective settings. Immutable; a change makes a new object."""

    store: StoreSettings = StoreSettings()
    index: IndexSettings = IndexSettings()
    search: SearchSettings = SearchSettings()
    jev: JevSettings = JevSettings()
    obsidian: ObsidianSettings = ObsidianSettings()
    recall: RecallSettings = RecallSettings()

    @model_validator(mode="after")
    def _rules_between_fields(self) -> Settings:
        jev = self.jev
        if jev.enabled and not jev.manage_ollama and jev.context_window is None:
            raise _rule(
                "jev.context_window",
                "is required when jev.enabled is true and jev.manage_ollama is false",
                "dsh-memory config set jev.context_window 8192 (the window of your model), "
                "or dsh-memory config set jev.manage_ollama true",
            )
        if self.obsidian.enabled and self.obsidian.vault_path is None:
            raise _rule(
                "obsidian.vault_path",
                "is required when obsidian.enabled is true",
                "dsh-memory config set obsidian.vault_path /absolute/path/to/vault",
            )
        for section, limits in (("index", self.index), ("recall", self.recall)):
            if limits.default_limit > limits.max_limit:
                raise _rule(
                    f"{section}.default_limit",
                    f"must not be larger than {section}.max_limit ({limits.max_limit})",
                    f"lower {section}.default_limit or raise {section}.max_limit",
                )
        return self


SECTIONS: dict[str, type[Section]] = {
    "store": StoreSettings,
    "index": IndexSettings,
    "search": SearchSettings,
    "jev": JevSettings,
    "obsidian": ObsidianSettings,
    "recall": RecallSettings,
}


def settings_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of `Settings`: types, bounds, defaults and meanings of every key."""
    return Settings.model_json_schema()


def _rule(key: str, reason: str, hint: str) -> PydanticCustomError:
    return PydanticCustomError("rule", "{reason}", {"key": key, "reason": reason, "hint": hint})

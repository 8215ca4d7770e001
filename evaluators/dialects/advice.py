"""Settings of an instrumentation that supply what its spans lack, as a dialect declares them.

Every name was read in the instrumentation's own documentation or source, which `source` cites. Where nothing can be
set, the advice says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Lack = Literal[
    "no_content",
    "content_in_logs",
    "no_tool_arguments",
    "no_tool_definitions",
    "no_session",
    "scrubbed",
    "no_tokens",
    "no_root",
    "truncated",
    "dropped_attributes",
]
"""What spans can lack. `content_in_logs`: it came as log records; `scrubbed`: logfire replaced the session id."""
LACKS: tuple[Lack, ...] = get_args(Lack)
CONTENT: tuple[Lack, ...] = ("no_content", "no_tool_arguments")
ALL_CONTENT: tuple[Lack, ...] = ("no_content", "content_in_logs", "no_tool_arguments")
OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One setting, in the agent's process, that supplies what the spans of one instrumentation lack."""

    lacks: tuple[Lack, ...]
    setting: str
    """Exactly what to set, as one would type it."""
    note: str = ""
    source: str
    speakers: tuple[str, ...] = ()
    """Prefixes of instrumentation scopes, or names of dialects. Empty: those of the declaring dialect, else any."""

    def fits(self, scopes: Iterable[str], dialects: Iterable[str]) -> bool:
        """Whether it applies to one of these scopes or dialects."""
        names = [*scopes, *dialects]
        return not self.speakers or any(name.startswith(self.speakers) for name in names)

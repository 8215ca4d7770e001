"""Section `forward.keep`: which traces are passed on to the user's own backend."""

from pydantic import Field

from collector.config.section import Section
from collector.config.values import Duration


class Keep(Section):
    """Reasons to keep a trace, and the share of the others."""

    share: float = Field(default=0.05, ge=0, le=1)
    failed: bool = True
    slow: float | None = Field(default=0.98, gt=0, lt=1)
    alarms: bool = True
    new_versions: int = Field(default=20, ge=0, le=10_000)
    feedback: bool = True
    others: float = Field(default=1.0, ge=0, le=1)
    per_minute: int | None = Field(default=None, ge=1, le=10_000_000)
    wait: Duration = Field(default=30.0, le=3600)

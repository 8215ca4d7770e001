"""What came for a trace, and what taking a record changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from collector.assembly.open_trace import Closing
from collector.log.port import Position


class Arrival(NamedTuple):
    """Where and when spans came for a trace that is not open."""

    offset: int
    time: float
    service: str
    spans: int


@dataclass(slots=True, kw_only=True)
class TakeResult:
    """What taking one record changed."""

    closings: list[Closing] = field(default_factory=list[Closing])
    needed: bool = False
    """Whether an open trace needs the record; otherwise the log may release it."""
    invalid: int = 0
    """Spans without valid ids."""
    duplicates: int = 0
    """Spans that an open trace already had."""
    ignored: dict[str, int] = field(default_factory=dict[str, int])
    """Spans that came too late, by service."""
    poison: str | None = None
    """Why the record could not be decoded."""
    dropped: list[int] = field(default_factory=list[int])
    """Offsets of records of which a part that was needed is not any more, once for each part."""
    freed: list[Position] = field(default_factory=list[Position])
    """Records that no trace needs any more."""

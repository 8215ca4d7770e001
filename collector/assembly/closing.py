"""What the buffer hands out: a closed trace, and what became of one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from collector.assembly.low_water import Hold
from evaluators.model import Closed, Root


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closing:
    """A trace that has closed and is not written yet. Its spans are needed until it is."""

    trace_id: bytes
    partition: int
    reason: Closed
    closed_at: float
    """Log time at which it was due, whenever that was noticed."""
    reach: int
    """The last offset that held something of it."""
    root: Root
    late: bool
    """Re-opened by late spans: to be merged with the record that its mark names."""
    pieces: tuple[bytes, ...]
    times: Sequence[float]
    """Log time of each piece."""
    offsets: Sequence[int]
    """Offset of each piece."""
    spans: int
    size: int
    hold: Hold


@dataclass(slots=True, kw_only=True)
class Step:
    """What taking one record did."""

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

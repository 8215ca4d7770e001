"""A segment of a made trace that has not closed, or one that is read again and waits to be known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collector.assembly.low_water import Hold
from collector.assembly.timeline import Timeline
from collector.otlp.segment import Segment
from collector.otlp.span_head import SpanHead
from collector.records.span_refs import Piece

SEGMENT_COST = 900
"""Bytes that a held segment takes besides its piece, rounded up."""


@dataclass(slots=True, kw_only=True, eq=False)
class HeldSegment:
    """A segment, and where it stands."""

    segment: Segment
    spans: Sequence[SpanHead]
    piece: Piece
    offset: int
    time: float
    hold: Hold
    service: str
    turn: bytes = b""
    """The trace that it is put in; empty: in none."""
    at: int = 0
    """Its place among the trace's segments, and of its piece among the trace's pieces."""
    is_parked: bool = False
    """Read again, and not known yet whether the closed trace that it seems to be of has it."""
    number: int = 0
    """In the order in which the owner's segments came."""
    timeline: Timeline | None = None
    """What places it; None: its own turn does, or it was looked at too often and waits until its trace is due."""
    looks: int = 0
    """How often it was looked at because more was known."""

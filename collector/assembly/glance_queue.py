"""Which open trace is looked at next: the one that most may have happened to since it was looked at last. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from typing import NamedTuple

from collector.assembly.open_trace import Glance
from collector.assembly.open_traces import OpenTraces

WAITING = 64
"""Traces that may wait, besides those that were passed over too often. What they hold stays with the open trace."""
_MUST_BE_SEEN = (True, -math.inf, 0, b"")
"""Before all of these, behind all others."""


class _Waiting(NamedTuple):
    place: tuple[bool, float, int, bytes]
    """In the order: last those that must be looked at, before them the most urgent; of two alike the older one."""
    open_traces: OpenTraces
    glance: Glance


class GlanceQueue:
    """Open traces that are due to be looked at, each once."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, _Waiting] = {}
        """By trace id: the newest glance of a trace replaces the one that waits."""
        self._order: list[tuple[bool, float, int, bytes]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, open_traces: OpenTraces, glance: Glance) -> Glance | None:
        """Let it wait; returns the least urgent one if too many wait, which is passed over."""
        trace = glance.trace
        before = self._taken(trace.trace_id)
        glance = glance.joined(before and before.glance)
        place = (trace.must_be_seen, glance.urgency, -trace.hold.number, trace.trace_id)
        self._waiting[trace.trace_id] = _Waiting(place, open_traces, glance)
        insort(self._order, place)
        if bisect_left(self._order, _MUST_BE_SEEN) <= WAITING:
            return None
        least = self._taken(self._order[0][-1])
        return least and least.glance

    def pop(self) -> tuple[OpenTraces, Glance]:
        """The one to look at now; there must be one."""
        _, _, _, trace_id = self._order.pop()
        waiting = self._waiting.pop(trace_id)
        return waiting.open_traces, waiting.glance

    def _taken(self, trace_id: bytes) -> _Waiting | None:
        waiting = self._waiting.pop(trace_id, None)
        if waiting is not None:
            del self._order[bisect_left(self._order, waiting.place)]
        return waiting

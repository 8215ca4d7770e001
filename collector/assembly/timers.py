"""When the next open trace of a partition is due: one heap entry per trace, corrected when it comes up."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from collector.assembly.open_trace import Deadline, OpenTrace
from collector.config.tree import TraceWindow


class Timers:
    """Open traces by due time.

    A deadline that moves back leaves its entry alone until it comes up; one that moves forward gets another entry.
    Entries of closed traces are skipped, and swept when they outnumber the open ones.
    """

    def __init__(self, windows: TraceWindow) -> None:
        self._windows = windows
        self._heap: list[tuple[float, int, bytes, OpenTrace]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def arm(self, trace: OpenTrace) -> None:
        """Make sure that the trace comes up no later than it is due."""
        at = trace.deadline(self._windows).at
        if at < trace.armed:
            self._push(at, trace)

    def due(self, now: float) -> Iterator[tuple[OpenTrace, Deadline]]:
        """Traces due at `now`, in the order of (due time, first offset, trace id). The caller closes each."""
        while self._heap and self._heap[0][0] <= now:
            at, _, _, trace = heappop(self._heap)
            if trace.is_closed or at != trace.armed:
                continue
            deadline = trace.deadline(self._windows)
            if deadline.at > at:
                self._push(deadline.at, trace)
            else:
                yield trace, deadline

    def sweep(self, live: int) -> None:
        """Forget the entries of closed traces when they are many; `live` traces are open."""
        if len(self._heap) > 64 + 2 * live:
            self._heap = [entry for entry in self._heap if not entry[3].is_closed]
            heapify(self._heap)

    def _push(self, at: float, trace: OpenTrace) -> None:
        trace.armed = at
        heappush(self._heap, (at, trace.hold.offset, trace.trace_id, trace))

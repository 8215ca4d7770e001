"""Which open traces are due, to be closed or to be looked at."""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from collector.assembly.open_trace import Deadline, Glance, OpenTrace
from collector.config.tree import TraceWindow


class Timers:
    """Open traces by the time at which they close or are looked at: a heap with one entry per trace.

    An entry is corrected when it comes up. A deadline that moves back leaves its entry alone until it comes up; one
    that moves forward gets another entry. Entries of closed traces are skipped, and swept when they outnumber the open
    ones.
    """

    def __init__(self, windows: TraceWindow) -> None:
        self._windows = windows
        self._heap: list[tuple[float, int, OpenTrace]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def arm(self, trace: OpenTrace) -> None:
        at = min(trace.deadline(self._windows).at, trace.glance_at)
        if at < trace.armed:
            self._push(at, trace)

    def due(
        self, now: float, glance: Callable[[Glance], None]
    ) -> Iterator[tuple[OpenTrace, Deadline]]:
        """Traces due at `now`, in the order of due time, then of opening. The caller closes each.

        `glance` is called with what is to be looked at by then, and does not close before.
        """
        while self._heap and self._heap[0][0] <= now:
            at, _, trace = heappop(self._heap)
            if trace.is_closed or at != trace.armed:
                continue
            deadline = trace.deadline(self._windows)
            if deadline.at <= at:
                yield trace, deadline
                continue
            next_ = deadline.at
            if next_ > now:
                if (due := trace.take_glance(now)) is not None:
                    glance(due)
                next_ = min(next_, trace.glance_at)
            self._push(next_, trace)

    def sweep(self, live: int) -> None:
        """Drop the entries of closed traces once they outnumber the `live` open ones twice."""
        if len(self._heap) > 64 + 2 * live:
            self._heap = [entry for entry in self._heap if not entry[2].is_closed]
            heapify(self._heap)

    def _push(self, at: float, trace: OpenTrace) -> None:
        trace.armed = at
        heappush(self._heap, (at, trace.hold.number, trace))

"""Closed traces by id, read back from `closings`: a span at or below `last_offset` is read again, above it is late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from collector.assembly.packed_marks import ClosedTrace, PackedMarks
from collector.assembly.turns import Turns
from collector.base.telemetry import OTHER
from collector.config.tree import TraceWindow
from collector.records.closings import Mark
from collector.records.sessions import service_of
from evaluators.model import Root

REMEMBERED_FOR = 6
"""Closed traces are remembered for this many times `late`: a span far too late must not open a second trace."""
IsNeeded: TypeAlias = Callable[[bytes, ClosedTrace], bool]
"""Whether a trace must stay remembered, whatever its age."""


class ClosedTraces:
    """The remembered traces of one partition, the oldest first."""

    def __init__(self, next_offset: int | None = None) -> None:
        self._traces = PackedMarks()
        self.turns = Turns()
        """What places segments of made traces."""
        self._next = next_offset
        """Marks to be written stand at or above this offset; None: unknown, read from the oldest."""

    def __len__(self) -> int:
        return len(self._traces)

    def get(self, trace_id: bytes) -> ClosedTrace | None:
        return self._traces.get(trace_id)

    def add(self, mark: Mark, offset: int) -> None:
        """Remember the trace of a mark at `offset`. A former owner's older mark may stand after a newer one.

        Raises:
            Undecodable: it is not the mark of a trace.
        """
        self._next = max(self._next or 0, offset + 1)
        newest = self._traces.get(mark.trace_id)
        if newest is not None and (newest.last_offset, newest.revision) > (
            mark.last_offset,
            mark.revision,
        ):
            return
        self._traces.put(mark.trace_id, _remember(mark, offset))
        if mark.turn is not None:
            self.turns.remember(mark.trace_id, mark.turn)

    def forget(self, now: float, windows: TraceWindow, *, is_needed: IsNeeded) -> None:
        """Drop the traces that are forgotten at log time `now`, up to the first one that is still needed."""
        while (oldest := self._traces.oldest()) is not None:
            trace_id, trace = oldest
            if not is_forgotten(trace, now, windows) or is_needed(trace_id, trace):
                return
            self._remove(trace_id)

    def evict(self, *, is_needed: IsNeeded) -> bool:
        """Drop the oldest trace; returns False if it is still needed or there is none."""
        oldest = self._traces.oldest()
        if oldest is None or is_needed(*oldest):
            return False
        self._remove(oldest[0])
        return True

    def _remove(self, trace_id: bytes) -> None:
        self._traces.remove(trace_id)
        self.turns.forget(trace_id)

    @property
    def since(self) -> int | None:
        """The offset in `closings` from which a replay finds every remembered trace and every later one."""
        oldest = self._traces.oldest()
        return self._next if oldest is None else oldest[1].offset


def may_revise(trace: ClosedTrace, time: float, windows: TraceWindow) -> bool:
    """Whether a span that came at log time `time` makes a revision of the trace."""
    return (
        trace.position is not None
        and time - trace.closed_at <= windows.late
        and trace.revision < windows.max_revisions
    )


def is_forgotten(trace: ClosedTrace, now: float, windows: TraceWindow) -> bool:
    """By log time, not by what is still in memory, so that a reader that lags decides the same."""
    return now - trace.closed_at > REMEMBERED_FOR * windows.late


def _remember(mark: Mark, offset: int) -> ClosedTrace:
    root: Root = "local" if mark.local_root else "missing" if mark.rootless else "parentless"
    return ClosedTrace(
        offset=offset,
        last_offset=mark.last_offset,
        revision=mark.revision,
        closed_at=mark.closed_at,
        traces_partition=mark.traces_partition,
        traces_offset=mark.traces_offset,
        root=root,
        service=service_of(mark.session_key) or OTHER,
    )

"""Closed traces by id, read back from `closings`: a span at or below `last_offset` is read again, above it is late."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from collector.log.port import TRACES, Position
from collector.records.closings import Mark
from collector.records.sessions import service_of
from collector.telemetry import OTHER
from evaluators.model import Root


class ClosedTrace(NamedTuple):
    """A trace that has closed, as its mark says."""

    offset: int
    """Of the mark itself, in `closings`."""
    last_offset: int
    """Of the records in `spans` that the closing covers."""
    revision: int
    closed_at: float
    traces_partition: int
    traces_offset: int
    """Negative: the trace could not be read and has no record."""
    root: Root
    service: str

    @property
    def position(self) -> Position | None:
        """Of the trace's newest record; None if it has no record."""
        if self.traces_offset < 0:
            return None
        return Position(TRACES, self.traces_partition, self.traces_offset)


IsNeeded: TypeAlias = Callable[[bytes, ClosedTrace], bool]
"""Whether a trace must stay remembered, whatever its age."""


class ClosedTraces:
    """The remembered traces of one partition, the oldest first."""

    def __init__(self, next_offset: int | None = None) -> None:
        self._traces: OrderedDict[bytes, ClosedTrace] = OrderedDict()
        self._next = next_offset
        """Marks to be written stand at or above this offset; None: unknown, read from the oldest."""

    def __len__(self) -> int:
        return len(self._traces)

    def get(self, trace_id: bytes) -> ClosedTrace | None:
        """The trace, if it is remembered."""
        return self._traces.get(trace_id)

    def add(self, mark: Mark, offset: int) -> None:
        """Remember the trace of a mark at `offset`. A former owner's older mark may stand after a newer one."""
        self._next = max(self._next or 0, offset + 1)
        newest = self._traces.get(mark.trace_id)
        if newest is not None and (newest.last_offset, newest.revision) > (
            mark.last_offset,
            mark.revision,
        ):
            return
        self._traces[mark.trace_id] = _remember(mark, offset)
        self._traces.move_to_end(mark.trace_id)

    def forget(self, *, before: float, is_needed: IsNeeded) -> None:
        """Drop traces closed before log time `before`, up to the first one that is still needed."""
        while self._traces:
            trace_id, oldest = next(iter(self._traces.items()))
            if oldest.closed_at >= before or is_needed(trace_id, oldest):
                return
            self._traces.popitem(last=False)

    def evict(self, *, is_needed: IsNeeded) -> bool:
        """Drop the oldest trace; returns False if it is still needed or there is none."""
        if not self._traces or is_needed(*next(iter(self._traces.items()))):
            return False
        self._traces.popitem(last=False)
        return True

    @property
    def since(self) -> int | None:
        """The offset in `closings` from which a replay finds every remembered trace and every later one."""
        if not self._traces:
            return self._next
        return next(iter(self._traces.values())).offset


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
        service=sys.intern(service_of(mark.session_key) or OTHER),
    )

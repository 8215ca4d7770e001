"""The memory of closed traces (DESIGN section 4, rule 2): at or below a mark's reach is a re-read, above it is late."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from collector.log.port import TRACES, Position
from collector.records.closings import Mark
from collector.records.session_key import service_of
from collector.telemetry import OTHER
from evaluators.model import Root


class Remembered(NamedTuple):
    """What is kept of a mark."""

    offset: int
    """Of the mark itself, in `closings`."""
    reach: int
    revision: int
    closed_at: float
    traces_partition: int
    traces_offset: int
    """Negative: the trace could not be read, there is no record."""
    root: Root
    service: str

    @property
    def position(self) -> Position | None:
        """Where the trace's newest record stands; None: there is none."""
        if self.traces_offset < 0:
            return None
        return Position(TRACES, self.traces_partition, self.traces_offset)


Needed: TypeAlias = Callable[[bytes, Remembered], bool]
"""Whether a mark must stay, whatever its age."""


class Marks:
    """The marks of one partition, oldest first."""

    def __init__(self, next_offset: int | None = None) -> None:
        self._marks: OrderedDict[bytes, Remembered] = OrderedDict()
        self._next = next_offset
        """Marks yet to come stand at or above this offset; None: not known, start at the oldest."""

    def __len__(self) -> int:
        return len(self._marks)

    def get(self, trace_id: bytes) -> Remembered | None:
        """The trace's mark, when it is remembered."""
        return self._marks.get(trace_id)

    def add(self, mark: Mark, offset: int) -> None:
        """Remember a mark that stands at `offset`. A former owner's older mark may come after a newer one."""
        self._next = max(self._next or 0, offset + 1)
        known = self._marks.get(mark.trace_id)
        if known is not None and (known.reach, known.revision) > (mark.reach, mark.revision):
            return
        self._marks[mark.trace_id] = _remember(mark, offset)
        self._marks.move_to_end(mark.trace_id)

    def forget(self, *, before: float, is_needed: Needed) -> None:
        """Drop marks of traces closed before `before`, up to the first one that is still needed."""
        while self._marks:
            trace_id, oldest = next(iter(self._marks.items()))
            if oldest.closed_at >= before or is_needed(trace_id, oldest):
                return
            self._marks.popitem(last=False)

    def evict(self, *, is_needed: Needed) -> bool:
        """Drop the oldest mark for want of room; False: it is needed, or there is none."""
        if not self._marks or is_needed(*next(iter(self._marks.items()))):
            return False
        self._marks.popitem(last=False)
        return True

    @property
    def since(self) -> int | None:
        """The offset in `closings` from which on all that is remembered, and all to come, is found."""
        if not self._marks:
            return self._next
        return next(iter(self._marks.values())).offset


def _remember(mark: Mark, offset: int) -> Remembered:
    root: Root = "local" if mark.local_root else "missing" if mark.rootless else "parentless"
    return Remembered(
        offset=offset,
        reach=mark.reach,
        revision=mark.revision,
        closed_at=mark.closed_at,
        traces_partition=mark.traces_partition,
        traces_offset=mark.traces_offset,
        root=root,
        service=sys.intern(service_of(mark.session_key) or OTHER),
    )

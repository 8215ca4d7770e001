"""Closed traces by id, read back from `closings`: a span at or below `last_offset` is read again, above it is late."""

import struct
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from collector.assembly.turns import Turns
from collector.base.errors import Undecodable
from collector.base.telemetry import OTHER
from collector.config.tree import TraceWindow
from collector.log.port import TRACES, Position
from collector.records.closings import Mark
from collector.records.sessions import service_of
from evaluators.model import Root

REMEMBERED_FOR = 6
"""Closed traces are remembered for this many times `late`: a span far too late must not open a second trace."""
ID_LENGTH = 16
_ROW = struct.Struct("<16s2qIdIqB")
"""The id, then a `ClosingMark` up to its root."""
_ROOTS: tuple[Root, ...] = ("parentless", "local", "missing")


class ClosingMark(NamedTuple):
    offset: int  # of the mark itself, in `closings`
    last_offset: int  # of the records in `spans` that the closing covers
    revision: int
    closed_at: float
    traces_partition: int
    traces_offset: int  # negative: the trace could not be read and has no record
    root: Root
    service: str

    @property
    def position(self) -> Position | None:
        """Of the trace's newest record; None if it has no record."""
        if self.traces_offset < 0:
            return None
        return Position(TRACES, self.traces_partition, self.traces_offset)


class PackedMarks:
    """Closed traces by id, in some 290 bytes each. What is put again becomes the newest."""

    def __init__(self) -> None:
        self._rows: dict[bytes, bytes] = {}  # by trace id: `_ROW`, then the name of the service
        self._order: deque[bytes] = deque()
        """The same rows, the oldest first. A row that is not in `_rows` any more is passed over: a dictionary alone
        would walk over all that left before it finds its first."""

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, trace_id: bytes) -> ClosingMark | None:
        row = self._rows.get(trace_id)
        return None if row is None else _unpacked(row)[1]

    def oldest(self) -> tuple[bytes, ClosingMark] | None:
        """What was put longest ago; None if there is nothing."""
        while self._order:
            row = self._order[0]
            if self._rows.get(row[:ID_LENGTH]) is row:
                return _unpacked(row)
            self._order.popleft()
        return None

    def put(self, trace_id: bytes, trace: ClosingMark) -> None:
        """Remember a trace, as the newest. Raises Undecodable: no trace has such an id or such numbers."""
        if len(trace_id) != ID_LENGTH:
            raise Undecodable("the id is not that of a trace")
        row = self._rows[trace_id] = _packed(trace_id, trace)
        self._order.append(row)
        if len(self._order) > 64 + 2 * len(self._rows):  # revisions leave their older rows behind
            self._order = deque(each for each in self._order if self._rows.get(each[:16]) is each)

    def remove(self, trace_id: bytes) -> None:
        """Forget a trace; an unknown one is not an error."""
        self._rows.pop(trace_id, None)


def _packed(trace_id: bytes, trace: ClosingMark) -> bytes:
    *numbers, root, service = trace
    try:
        return _ROW.pack(trace_id, *numbers, _ROOTS.index(root)) + service.encode()
    except struct.error as error:
        raise Undecodable("a number of the mark is out of range") from error


def _unpacked(row: bytes) -> tuple[bytes, ClosingMark]:
    values: tuple[Any, ...] = _ROW.unpack_from(row)
    trace_id, *numbers, root = values
    return trace_id, ClosingMark._make((*numbers, _ROOTS[int(root)], row[_ROW.size :].decode()))


IsNeeded = Callable[[bytes, ClosingMark], bool]
"""Whether a trace must stay remembered, whatever its age."""


class ClosedTraces:
    """The remembered traces of one partition, the oldest first."""

    def __init__(self, next_offset: int | None = None) -> None:
        self._traces = PackedMarks()
        self.turns = Turns()  # what places segments of made traces
        self._next = next_offset  # marks to be written are at or above this offset; None: unknown, read from the oldest

    def __len__(self) -> int:
        return len(self._traces)

    def get(self, trace_id: bytes) -> ClosingMark | None:
        return self._traces.get(trace_id)

    def add(self, mark: Mark, offset: int) -> None:
        """Remember the trace of a mark at `offset`. A former owner's older mark may be after a newer one.

        Raises Undecodable: it is not the mark of a trace.
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


def may_revise(trace: ClosingMark, time: float, windows: TraceWindow) -> bool:
    """Whether a span that came at log time `time` makes a revision of the trace."""
    return (
        trace.position is not None
        and time - trace.closed_at <= windows.late
        and trace.revision < windows.max_revisions
    )


def is_forgotten(trace: ClosingMark, now: float, windows: TraceWindow) -> bool:
    """By log time, not by what is still in memory, so that a reader that lags decides the same."""
    return now - trace.closed_at > REMEMBERED_FOR * windows.late


def _remember(mark: Mark, offset: int) -> ClosingMark:
    root: Root = "local" if mark.local_root else "missing" if mark.rootless else "parentless"
    return ClosingMark(
        offset=offset,
        last_offset=mark.last_offset,
        revision=mark.revision,
        closed_at=mark.closed_at,
        traces_partition=mark.traces_partition,
        traces_offset=mark.traces_offset,
        root=root,
        service=service_of(mark.session_key) or OTHER,
    )

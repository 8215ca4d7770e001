"""The open traces of one partition: which there are, when each is due, what those of each service take."""

from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from collector.assembly.closed_traces import ClosedTraces, is_forgotten, may_revise
from collector.assembly.closing import Closing, PartitionClosings
from collector.assembly.open_trace import OpenTrace
from collector.assembly.service_queues import ServiceQueues, Shares
from collector.assembly.timers import Timers
from collector.config.tree import TraceWindow
from collector.log.port import Position
from collector.otlp.span_head import SpanHead
from collector.records.span_refs import Piece
from evaluators.model import Closed, Root


class Arrival(NamedTuple):
    """Where and when spans came for a trace that is not open."""

    offset: int
    time: float
    service: str
    spans: int


@dataclass(slots=True, kw_only=True)
class TakeResult:
    closings: list[Closing] = field(default_factory=list[Closing])
    needed: bool = False  # whether an open trace needs the record; otherwise the log may release it
    invalid: int = 0  # spans without valid ids
    duplicates: int = 0  # spans that an open trace already had
    late: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Spans of closed traces that make no revision, by service and by what was done."""
    poison: str | None = None  # why the record could not be decoded
    dropped: list[int] = field(default_factory=list[int])
    """Offsets of records of which a part that was needed is not any more, once for each part."""
    freed: list[Position] = field(default_factory=list[Position])
    """Records that no trace needs any more."""


class TraceTable:
    """Opens, fills and closes traces as it is told to; what closes goes to `closings`."""

    def __init__(self, partition: int, windows: TraceWindow, closed_traces: ClosedTraces) -> None:
        self.closings = PartitionClosings(partition, closed_traces, windows)
        self.now = 0.0  # the newest log time known
        self._windows = windows
        self._open: OrderedDict[bytes, OpenTrace] = OrderedDict()
        self._queues = ServiceQueues()
        self._timers = Timers(windows)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def open(self) -> Collection[OpenTrace]:
        return self._open.values()

    @property
    def size(self) -> int:
        """Bytes of memory that the open traces take."""
        return self._queues.size

    def join(self, shares: Shares) -> None:
        """The process owns the partition: what its traces take counts in `shares`, until `leave`."""
        self.closings.is_owned = True
        self._queues.join(shares)

    def leave(self) -> None:
        self.closings.is_owned = False
        self._queues.leave()

    def opened(self, trace_id: bytes) -> OpenTrace | None:
        return self._open.get(trace_id)

    def add(
        self,
        trace: OpenTrace,
        new: Sequence[SpanHead],
        piece: Piece,
        at: Arrival,
        result: TakeResult,
    ) -> None:
        """Add a piece with its new spans to an open trace; it may be full then, and closes."""
        cost = trace.cost
        trace.add(new, piece, offset=at.offset, time=at.time)
        self._queues.grow(trace, trace.cost - cost)
        if len(trace.ids) >= self._windows.max_spans:
            result.closings.append(self.close(trace, "max_spans", at=at.time))
        elif trace.size >= self._windows.max_bytes:
            result.closings.append(self.close(trace, "max_bytes", at=at.time))
        else:
            self._timers.arm(trace)

    def arm(self, trace: OpenTrace) -> None:
        """Its deadline may be earlier than it was."""
        self._timers.arm(trace)

    def changed(self, trace: OpenTrace, before: int) -> None:
        self._queues.grow(trace, trace.cost - before)

    def drop(self, trace: OpenTrace) -> None:
        """An open trace has nothing any more: all of it was another's."""
        trace.is_closed = True
        del self._open[trace.trace_id]
        self._queues.remove(trace)
        self.closings.low_water.release(trace.hold)
        trace.let_go()

    def admit(self, trace_id: bytes, came: Arrival, result: TakeResult) -> OpenTrace | None:
        """Open or re-open a trace; None if the record is re-read or too late."""
        mark = self.closings.newest_mark(trace_id)
        if mark is not None and came.offset <= mark.last_offset:
            return None
        if mark is None or is_forgotten(mark, came.time, self._windows):
            return self._open_trace(trace_id, came, None)
        if may_revise(mark, came.time, self._windows):
            return self._open_trace(trace_id, came, mark.root)
        result.late[mark.service, "ignored"] += came.spans
        return None

    def is_reread(self, trace_id: bytes, offset: int) -> bool:
        mark = self.closings.newest_mark(trace_id)
        return mark is not None and offset <= mark.last_offset

    def _open_trace(self, trace_id: bytes, came: Arrival, reopened: Root | None) -> OpenTrace:
        trace = OpenTrace(
            trace_id=trace_id,
            closings=self.closings,
            first_time=came.time,
            hold=self.closings.low_water.hold(came.offset),
            reopened=reopened,
            service=came.service,
        )
        trace.glance_every_doubling(self._windows.glance)
        self._open[trace_id] = trace
        self._queues.add(trace)
        return trace

    def oldest(self, service: str | None = None) -> OpenTrace | None:
        if service is not None:
            return self._queues.oldest(service)
        return next(iter(self._open.values()), None)

    def drain(self, *, rootless: Closed) -> list[Closing]:
        """Close every open trace, at the newest log time known."""
        return [
            self.close(trace, rootless if trace.root == "missing" else "root_ended")
            for trace in list(self._open.values())
        ]

    def close(self, trace: OpenTrace, reason: Closed, *, at: float | None = None) -> Closing:
        """Close an open trace, as due at log time `at`; None: at the newest log time known."""
        at = self.now if at is None else at
        trace.is_closed = True
        del self._open[trace.trace_id]
        self._queues.remove(trace)
        self._timers.sweep(len(self._open))
        closing = trace.as_closing(reason, at=at)
        trace.let_go()
        self.closings.add(closing)
        return closing

"""One open trace: its spans so far, what it is once it has closed; which traces are due, which offset they hold."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from collector.config.tree import TraceWindow
from collector.otlp.span_head import SpanHead
from evaluators.model import Closed, Root


class Hold:
    """One trace's claim on everything from its first offset on."""

    __slots__ = ("done", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.done = False


class Deadline(NamedTuple):
    """When a trace closes if nothing else happens (log time), and why."""

    at: float
    reason: Closed


class Glance(NamedTuple):
    """An open trace that is to be looked at as it stood when the glance was due."""

    trace: OpenTrace
    first: int
    """Of its pieces: 0, or the first that came since it was looked at last."""
    end: int
    """How many of its pieces had arrived."""

    def joined(self, earlier: Glance | None) -> Glance:
        """One look instead of this and an earlier one of the trace that was not made yet."""
        if earlier is None or earlier.trace is not self.trace:
            return self
        return self._replace(first=min(self.first, earlier.first))

    @property
    def whole(self) -> Glance:
        """A look at all that had arrived."""
        return self._replace(first=0)


TRACE_COST, PIECE_COST, SPAN_COST = 1_200, 60, 170
"""Bytes that the objects of an open trace take besides its pieces, rounded up from what tracemalloc says: once, for
each piece, and for each span id with a parent that has not come."""


class OpenTrace:
    """The spans of one trace since it was opened, or re-opened by a late span.

    `reopened` says which root the trace had when it closed, None for one that is open for the first time: its missing
    parents may stand in the part that closed, so only a parentless span changes what is known about its root.
    """

    __slots__ = (
        "_local_missing",
        "_missing",
        "armed",
        "first_time",
        "glance_at",
        "glanced",
        "glanced_bytes",
        "hold",
        "ids",
        "is_closed",
        "last_offset",
        "last_time",
        "local_at",
        "offsets",
        "pieces",
        "reopened",
        "repeats_missing",
        "root_at",
        "service",
        "size",
        "times",
        "trace_id",
    )

    def __init__(
        self,
        trace_id: bytes,
        *,
        time: float,
        hold: Hold,
        reopened: Root | None,
        service: str = "",
    ) -> None:
        self.trace_id = trace_id
        self.service = service
        """That of its first piece, which its memory is charged to."""
        self.hold = hold
        self.reopened: Root | None = reopened
        self.first_time = self.last_time = time
        self.root_at: float | None = time if reopened == "parentless" else None
        self.local_at: float | None = time if reopened == "local" else None
        self.last_offset = hold.offset
        self.size = 0
        self.pieces: list[bytes] = []
        self.times = array("d")
        self.offsets = array("q")
        self.ids: set[bytes] = set()
        self.armed = math.inf
        self.glance_at = math.inf
        """Log time at which it is looked at next, if spans came since."""
        self.glanced = 0
        """Pieces that it had when it was looked at last."""
        self.glanced_bytes = 0
        """That all looks at it have read."""
        self.repeats_missing = 1
        """Repeats that the call that was repeated most lacked at the last look at the whole, but those that came."""
        self.is_closed = False
        self._missing: dict[bytes, bool] = {}
        """Parents that have not arrived, and whether every child calls its parent remote."""
        self._local_missing = 0

    @property
    def cost(self) -> int:
        """Bytes of memory that it takes; never less after a piece is added."""
        return self.size + TRACE_COST + PIECE_COST * len(self.pieces) + SPAN_COST * len(self.ids)

    def glance_every_doubling(self, age: float | None) -> None:
        """Look at it when it is `age` seconds old, and at every doubling of its age; None: never."""
        self.glance_at = math.inf if age is None else self.first_time + age

    def stop_glances(self) -> None:
        """Do not look at it again while it is open."""
        self.glance_at = math.inf

    def take_glance(self, now: float) -> Glance | None:
        """What to look at now, if spans came since; the next time is the first doubling of its age after `now`.

        It is the whole trace while all looks read at most twice what it holds. Beyond that it is what came since:
        whether so many calls of one kind came that the trace may have become a loop.
        """
        if now < self.glance_at:
            return None
        while self.glance_at <= now:
            self.glance_at = self.first_time + 2 * (self.glance_at - self.first_time)
        count = len(self.pieces)
        if count == self.glanced:
            return None
        first = 0 if self.glanced_bytes <= self.size else self.glanced
        self.glanced = count
        self.glanced_bytes += sum(map(len, self.pieces[first:]))
        return Glance(self, first, count)

    def passed_over(self, glance: Glance) -> None:
        """The glance was not made: what it was to look at is looked at next time."""
        self.glanced = min(self.glanced, glance.first)
        self.glanced_bytes -= sum(map(len, self.pieces[glance.first : glance.end]))

    def came(self, calls: int) -> bool:
        """So many calls of one kind were in what came; returns whether the whole must be looked at."""
        if calls >= self.repeats_missing:
            self.glanced_bytes += self.size
            return True
        self.repeats_missing -= calls
        return False

    def let_go(self) -> None:
        """Hold no spans any more: it is closed, but its entry may stay in `Timers` for as long as `max_age`."""
        self.pieces.clear()
        self.ids.clear()

    @property
    def root(self) -> Root:
        """What stands at the top of the spans so far."""
        if self.root_at is not None:
            return "parentless"
        return "missing" if self.local_at is None else "local"

    def new(self, spans: Sequence[SpanHead]) -> list[SpanHead]:
        """The spans that the trace does not have yet, the first copy of each."""
        seen: set[bytes] = set()
        new: list[SpanHead] = []
        for span in spans:
            if span.span_id not in self.ids and span.span_id not in seen:
                seen.add(span.span_id)
                new.append(span)
        return new

    def add(self, spans: Sequence[SpanHead], piece: bytes, *, offset: int, time: float) -> None:
        """Take in a piece and its spans, all of them new."""
        self.pieces.append(piece)
        self.times.append(time)
        self.offsets.append(offset)
        self.size += len(piece)
        self.last_offset = offset
        self.last_time = time
        for span in spans:
            self._place(span, time)
        if self.reopened is None:
            self._look_for_local_root(time)

    def deadline(self, windows: TraceWindow) -> Deadline:
        """The first of root_grace or local_root_grace or idle, and max_age."""
        if self.root_at is not None:
            due = Deadline(self.root_at + windows.root_grace, "root_ended")
        elif self.local_at is not None:
            due = Deadline(self.local_at + windows.local_root_grace, "root_ended")
        else:
            due = Deadline(self.last_time + windows.idle, "idle")
        aged = self.first_time + windows.max_age
        return Deadline(aged, "max_age") if aged < due.at else due

    def _place(self, span: SpanHead, time: float) -> None:
        self.ids.add(span.span_id)
        if self._missing.pop(span.span_id, None) is False:
            self._local_missing -= 1
        parent = span.parent_span_id
        if not parent:
            if self.root_at is None:  # later spans, a second root among them, extend nothing
                self.root_at = time
        elif parent not in self.ids:
            self._miss(parent, remote=span.remote_parent)

    def _miss(self, parent: bytes, *, remote: bool) -> None:
        all_remote = self._missing.get(parent)
        self._missing[parent] = remote if all_remote is None else all_remote and remote
        if all_remote is not False and not remote:
            self._local_missing += 1

    def _look_for_local_root(self, time: float) -> None:
        """The local root counts while all missing parents are remote; a missing local parent may still arrive."""
        if not self._missing or self._local_missing:
            self.local_at = None
        elif self.local_at is None:
            self.local_at = time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closing:
    """A trace that has closed and is not written yet; until then its spans are needed."""

    trace_id: bytes
    partition: int
    service: str
    """That of its first piece."""
    reason: Closed
    closed_at: float
    """Log time at which it was due, not when that was noticed."""
    last_offset: int
    """Of the last record that held spans of it."""
    root: Root
    late: bool
    """Re-opened by late spans: merged with the record that its mark names."""
    pieces: tuple[bytes, ...]
    times: Sequence[float]
    """Log time of each piece."""
    offsets: Sequence[int]
    """Offset of each piece."""
    spans: int
    size: int
    """Bytes of its pieces."""
    cost: int
    """Bytes of memory that it took while it was open."""
    hold: Hold


class Timers:
    """Open traces by the time at which they close or are looked at: a heap with one entry per trace.

    An entry is corrected when it comes up.

    A deadline that moves back leaves its entry alone until it comes up; one that moves forward gets another entry.
    Entries of closed traces are skipped, and swept when they outnumber the open ones.
    """

    def __init__(self, windows: TraceWindow) -> None:
        self._windows = windows
        self._heap: list[tuple[float, int, bytes, OpenTrace]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def arm(self, trace: OpenTrace) -> None:
        """Enter the trace, unless an entry comes up early enough already."""
        at = min(trace.deadline(self._windows).at, trace.glance_at)
        if at < trace.armed:
            self._push(at, trace)

    def due(
        self, now: float, glance: Callable[[Glance], None]
    ) -> Iterator[tuple[OpenTrace, Deadline]]:
        """Traces due at `now`, in the order of (due time, first offset, trace id). The caller closes each.

        `glance` is called with what is to be looked at by then, and does not close before.
        """
        while self._heap and self._heap[0][0] <= now:
            at, _, _, trace = heappop(self._heap)
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
            self._heap = [entry for entry in self._heap if not entry[3].is_closed]
            heapify(self._heap)

    def _push(self, at: float, trace: OpenTrace) -> None:
        trace.armed = at
        heappush(self._heap, (at, trace.hold.offset, trace.trace_id, trace))


class LowWater:
    """The holds of a partition in the order of their offsets: records are read in order, so holds are made in order."""

    def __init__(self) -> None:
        self._holds: deque[Hold] = deque()
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def hold(self, offset: int) -> Hold:
        """Claim everything from `offset` on, which is not below an earlier claim."""
        hold = Hold(offset)
        self._holds.append(hold)
        self._live += 1
        return hold

    def release(self, hold: Hold) -> None:
        """Give a claim back; doing it twice is the same as once."""
        if hold.done:
            return
        hold.done = True
        self._live -= 1
        if (
            len(self._holds) > 64 + 2 * self._live
        ):  # one old trace must not keep the claims of all after it
            self._holds = deque(hold for hold in self._holds if not hold.done)

    def commit_offset(self, next_offset: int) -> int:
        """The offset to commit: the first that is held, or `next_offset`, the next to be read."""
        while self._holds and self._holds[0].done:
            self._holds.popleft()
        return self._holds[0].offset if self._holds else next_offset

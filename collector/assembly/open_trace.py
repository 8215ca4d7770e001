"""One open trace: its spans so far and when it is due."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from collector.assembly.closing import Closing, PartitionClosings
from collector.assembly.low_water import Hold
from collector.config.tree import TraceWindow
from collector.otlp.span_head import SpanHead
from collector.records.span_refs import Piece, size_of
from evaluators.model import Closed, Root


class Deadline(NamedTuple):
    """When a trace closes if nothing else happens (log time), and why."""

    at: float
    reason: Closed


class Glance(NamedTuple):
    """An open trace that is to be looked at as it was when the glance was due."""

    trace: OpenTrace
    first: int  # of its pieces: 0, or the first that came since it was looked at last
    end: int  # how many of its pieces had arrived
    spans: int  # how many spans these hold

    @property
    def urgency(self) -> float:
        return (self.spans - self.trace.seen_spans) * self.trace.call_share

    def joined(self, earlier: Glance | None) -> Glance:
        if earlier is None or earlier.trace is not self.trace:
            return self
        return self._replace(first=min(self.first, earlier.first))

    @property
    def whole(self) -> Glance:
        return self._replace(first=0)

    @property
    def closing(self) -> Closing:
        """What is to be looked at, as if it had closed; nothing is written of it."""
        whole = self.trace.as_closing("idle", at=self.trace.last_time)
        part = slice(self.first, self.end)
        return replace(whole, pieces=whole.pieces[part], times=whole.times[part])


TRACE_COST, PIECE_COST, SPAN_COST = 1_250, 60, 170
"""Bytes that the objects of an open trace take besides the spans that it holds, rounded up from what tracemalloc says:
once, for each piece, and for each span id with a parent that has not come."""
MOST_PASSES = 3
"""Times in a row that it is passed over when it is to be looked at: a loop that came slowly is found, too."""
REF_COST = 130  # bytes that say where a piece is in the log


@dataclass(slots=True, kw_only=True, eq=False)
class OpenTrace:
    """The spans of one trace since it was opened, or re-opened by a late span."""

    trace_id: bytes
    closings: PartitionClosings
    service: str = ""  # that of its first piece, which its memory is charged to
    hold: Hold
    reopened: Root | None
    """Which root it had when it closed, None for one that is open for the first time: its missing parents may be in
    the part that closed, so only a parentless span changes what is known about its root."""
    first_time: float
    last_time: float = field(init=False)
    root_at: float | None = field(init=False)
    local_at: float | None = field(init=False)
    last_offset: int = field(init=False)
    size: int = 0  # bytes of its spans, in memory or in the log
    held: int = 0  # bytes of its pieces in memory, or of where they are
    pieces: list[Piece] = field(default_factory=list[Piece])
    times: array[float] = field(default_factory=lambda: array("d"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    ids: set[bytes] = field(default_factory=set[bytes])
    armed: float = math.inf
    glance_at: float = math.inf  # log time at which it is looked at next, if spans came since
    glanced: int = 0  # pieces that it had when it was looked at last
    glanced_bytes: int = 0  # that all looks at it have read
    repeats_missing: int = 1
    """Repeats that the call that was repeated most lacked at the last look at the whole, but those that came."""
    passes: int = 0  # how often in a row it was to be looked at and was not
    seen_spans: int = 0  # spans that it had when it was looked at last
    call_share: float = 1.0
    """How many of the spans that were looked at last were model calls; 1 before the first look."""
    is_closed: bool = False
    is_made: bool = False
    """Made of segments: it ends when its turn does, whatever its spans call their parents."""
    is_named: bool = False  # a signal has named it by its id, which it keeps
    _missing: dict[bytes, bool] = field(default_factory=dict[bytes, bool])
    """Parents that have not arrived, and whether every child calls its parent remote."""
    _local_missing: int = 0

    def __post_init__(self) -> None:
        self.last_time = time = self.first_time
        self.root_at = time if self.reopened == "parentless" else None
        self.local_at = time if self.reopened == "local" else None
        self.last_offset = self.hold.offset

    @property
    def is_open(self) -> bool:
        """Whether it is, here, and no earlier part of it waits to be written."""
        closings = self.closings
        return closings.is_owned and not self.is_closed and self.trace_id not in closings

    def end(self, time: float) -> None:
        """Of a made trace: nothing more of its turn is expected. Doing it again changes nothing."""
        if self.root_at is None:
            self.root_at = time

    def remove(self, at: int, ids: Collection[bytes]) -> None:
        """Of a made trace: the piece at this place, with spans of these ids, is another's; the last takes its place."""
        piece, self.pieces[at] = self.pieces[at], self.pieces[-1]
        self.times[at], self.offsets[at] = self.times[-1], self.offsets[-1]
        for row in (self.pieces, self.times, self.offsets):
            row.pop()
        self.ids.difference_update(ids)
        self.size -= size_of(piece)
        self.held -= len(piece) if isinstance(piece, bytes) else REF_COST
        self.glanced = self.glanced_bytes = self.seen_spans = 0

    @property
    def cost(self) -> int:
        """Bytes of memory that it takes; never less after a piece is added."""
        return self.held + TRACE_COST + PIECE_COST * len(self.pieces) + SPAN_COST * len(self.ids)

    def glance_every_doubling(self, age: float | None) -> None:
        """Look at it when it is `age` seconds old, and at every doubling of its age; None: never."""
        self.glance_at = math.inf if age is None else self.first_time + age

    def stop_glances(self) -> None:
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
        self.glanced_bytes += sum(map(size_of, self.pieces[first:]))
        return Glance(self, first, count, len(self.ids))

    def passed_over(self, glance: Glance) -> None:
        """The glance was not made: what it was to look at is looked at next time."""
        self.glanced = min(self.glanced, glance.first)
        self.glanced_bytes -= sum(map(size_of, self.pieces[glance.first : glance.end]))
        self.passes += 1

    @property
    def must_be_seen(self) -> bool:
        return self.passes >= MOST_PASSES

    def was_seen(self, glance: Glance, call_share: float) -> None:
        """It was looked at; so many of the spans were model calls."""
        self.passes, self.seen_spans, self.call_share = 0, glance.spans, call_share

    def came(self, calls: int) -> bool:
        """So many calls of one kind were in what came; returns whether the whole must be looked at."""
        if calls >= self.repeats_missing:
            self.glanced_bytes += self.size
            return True
        self.repeats_missing -= calls
        return False

    def as_closing(self, reason: Closed, *, at: float) -> Closing:
        """What it holds, as closed at log time `at`."""
        return Closing(
            trace_id=self.trace_id,
            closings=self.closings,
            service=self.service,
            reason=reason,
            closed_at=at,
            last_offset=self.last_offset,
            root=self.root,
            late=self.reopened is not None,
            pieces=tuple(self.pieces),
            times=self.times,
            offsets=self.offsets,
            spans=len(self.ids),
            size=self.size,
            cost=self.cost,
            hold=self.hold,
            is_named=self.is_named,
        )

    def let_go(self) -> None:
        """Hold no spans any more: it is closed, but its entry may stay in `Timers` for as long as `max_age`."""
        self.pieces.clear()
        self.ids.clear()

    @property
    def root(self) -> Root:
        if self.root_at is not None:
            return "parentless"
        return "missing" if self.local_at is None else "local"

    def new(self, spans: Sequence[SpanHead]) -> Sequence[SpanHead]:
        """The spans that the trace does not have yet, the first copy of each."""
        ids = {span_id for _, span_id, _, _ in spans}
        if len(ids) == len(spans) and self.ids.isdisjoint(ids):
            return spans
        ids &= self.ids
        new: list[SpanHead] = []
        for span in spans:
            if span.span_id not in ids:
                ids.add(span.span_id)
                new.append(span)
        return new

    def add(self, spans: Sequence[SpanHead], piece: Piece, *, offset: int, time: float) -> None:
        self.pieces.append(piece)
        self.times.append(time)
        self.offsets.append(offset)
        self.size += size_of(piece)
        self.held += len(piece) if isinstance(piece, bytes) else REF_COST
        self.last_offset = offset
        self.last_time = time
        self._place(spans, time)
        if self.reopened is None and not self.is_made:
            self._look_for_local_root(time)

    def deadline(self, windows: TraceWindow) -> Deadline:
        if self.root_at is not None:
            due = Deadline(self.root_at + windows.root_grace, "root_ended")
        elif self.local_at is not None:
            due = Deadline(self.local_at + windows.local_root_grace, "root_ended")
        else:
            due = Deadline(self.last_time + windows.idle, "idle")
        aged = self.first_time + windows.max_age
        return Deadline(aged, "max_age") if aged < due.at else due

    def _place(self, spans: Sequence[SpanHead], time: float) -> None:
        """One loop without calls: it runs for every span that there is."""
        ids, missing = self.ids, self._missing
        for _, span_id, parent, is_remote in spans:
            ids.add(span_id)
            if missing and missing.pop(span_id, None) is False:
                self._local_missing -= 1
            if not parent:
                # Later spans, a second root among them, extend nothing.
                if self.root_at is None and not self.is_made:
                    self.root_at = time
            elif parent not in ids and missing.get(parent) is not False:
                missing[parent] = is_remote
                if not is_remote:
                    self._local_missing += 1

    def _look_for_local_root(self, time: float) -> None:
        """The local root counts while all missing parents are remote; a missing local parent may still arrive."""
        if not self._missing or self._local_missing:
            self.local_at = None
        elif self.local_at is None:
            self.local_at = time

"""One open trace: its spans so far, and when it is due."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from collector.assembly.low_water import Hold
from collector.config.tree import TraceWindow
from collector.otlp.span_head import SpanHead
from evaluators.model import Closed, Root


class Deadline(NamedTuple):
    """When a trace closes if nothing else happens (log time), and why."""

    at: float
    reason: Closed


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
        "hold",
        "ids",
        "is_closed",
        "last_time",
        "local_at",
        "offsets",
        "pieces",
        "reach",
        "reopened",
        "root_at",
        "size",
        "times",
        "trace_id",
    )

    def __init__(self, trace_id: bytes, *, time: float, hold: Hold, reopened: Root | None) -> None:
        self.trace_id = trace_id
        self.hold = hold
        self.reopened: Root | None = reopened
        self.first_time = self.last_time = time
        self.root_at: float | None = time if reopened == "parentless" else None
        self.local_at: float | None = time if reopened == "local" else None
        self.reach = hold.offset
        self.size = 0
        self.pieces: list[bytes] = []
        self.times = array("d")
        self.offsets = array("q")
        self.ids: set[bytes] = set()
        self.armed = math.inf
        self.is_closed = False
        self._missing: dict[bytes, bool] = {}
        """Parents that have not come, and whether every child calls its parent remote."""
        self._local_missing = 0

    @property
    def root(self) -> Root:
        """What stands at the top of the trace, as far as it has come."""
        if self.root_at is not None:
            return "parentless"
        return "missing" if self.local_at is None else "local"

    def new(self, spans: Sequence[SpanHead]) -> list[SpanHead]:
        """Those spans that are not here yet, the first copy of each."""
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
        self.reach = offset
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
        known = self._missing.get(parent)
        self._missing[parent] = remote if known is None else known and remote
        if known is not False and not remote:
            self._local_missing += 1

    def _look_for_local_root(self, time: float) -> None:
        """Armed while all missing parents are remote; a missing local parent is still on its way."""
        if not self._missing or self._local_missing:
            self.local_at = None
        elif self.local_at is None:
            self.local_at = time

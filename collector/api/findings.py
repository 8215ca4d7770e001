"""What the doctor finds in the newest traces. A request looks at few of them; the next one goes on."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec

from collector.api.about import About, Row
from collector.api.off_loop import OffLoop
from collector.api.query import Query, session_shown
from collector.api.traces import Traces
from collector.base.clock import Clock

EVERY = 60.0  # seconds for which the same traces are looked at
TRACES = 24
"""Traces that are looked at: the newest of each agent, or of several of its sessions where there are few agents."""
PATIENCE = 0.15  # seconds after which a request begins no other trace


@dataclass(slots=True, eq=False, kw_only=True)
class Findings:
    """The findings as `spanwise doctor --format json` has them, over fewer traces."""

    about: About
    query: Query
    traces: Traces
    off_loop: OffLoop  # where sessions are read
    clock: Clock  # Unix seconds
    monotonic: Callable[[], float] = time.monotonic
    _one: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _listed: float | None = field(default=None, init=False)
    _sessions: Sequence[Row] = field(default=(), init=False)
    _notes: dict[str, object] = field(default_factory=dict[str, object], init=False)
    """By the id of a trace that was looked at; None: it is gone."""

    async def now(self, patience: float = PATIENCE) -> Row:
        """The findings so far, with how many traces there are to look at (`of`) and were looked at (`looked_at`).

        `patience`: seconds after which this request begins no other trace. Raises Refused: too many requests wait for
        whole traces.
        """
        async with self._one:
            if self._listed is None or not 0 <= self.clock() - self._listed < EVERY:
                self._sessions = await self.off_loop.run(self._newest)
                self._listed = self.clock()
            ids = [each["trace_id"] for session in self._sessions for each in session["traces"]]
            self._notes = {each: note for each, note in self._notes.items() if each in ids}
            await self._go_on(ids, patience)
            notes = [each for each in self._notes.values() if each is not None]
            found = await asyncio.to_thread(self.about.diagnose, notes, self._sessions)
            return {**found, "looked_at": len(self._notes), "of": len(ids)}

    async def _go_on(self, ids: Sequence[str], patience: float) -> None:
        began = self.monotonic()
        for trace_id in ids:
            if trace_id not in self._notes:
                self._notes[trace_id] = await self.traces.find(
                    trace_id, lambda full: self.about.examine(full.trace, full.spans)
                )
                if self.monotonic() - began > patience:
                    return

    def _newest(self) -> Sequence[Row]:
        shown = map(session_shown, self.query.latest(TRACES))
        return cast(Sequence[Row], msgspec.json.decode(msgspec.json.encode(list(shown))))

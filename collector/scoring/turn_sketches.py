"""The sketches of a session's turns: what a trace is compared by with those before it. Pure.

The newest turns' are kept. Those of older turns, of sessions that were restored, and of sessions that rest where the
log is quick to read, are in the records of their traces, which are read when one is asked for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from collector.records.sessions import SessionTurn
from collector.records.trace_views import SummarisedTrace
from collector.scoring.sliding_window import SlidingWindow
from evaluators.model import Outcome
from evaluators.plan import Configured
from evaluators.resources import WINDOW
from evaluators.sketches import Before, compare

Sketches = Mapping[str, bytes]  # of one trace, by evaluator (`evaluators.sketches`)
KEPT = WINDOW + 1
"""Turns of a session, the newest: those that the next is compared by, and one more, as two may come in any order."""


def sketches_in(record: SummarisedTrace) -> Sketches:
    return {} if record.outcomes is None else record.outcomes.sketches


@dataclass(slots=True, eq=False)
class TurnSketches:
    window: SlidingWindow
    due: Sequence[Configured]
    _kept: dict[str, Sketches] = field(default_factory=dict[str, Sketches])

    @property
    def kept(self) -> Mapping[str, Sketches]:
        return self._kept

    @property
    def size(self) -> int:
        return sum(len(each) for sketches in self._kept.values() for each in sketches.values())

    def put(self, trace_id: str, sketches: Sketches) -> None:
        if self.due:
            self._kept[trace_id] = sketches

    def lacking(self, entry: SessionTurn, affected: Iterable[str]) -> tuple[SessionTurn, ...]:
        """The turns that a turn, and those after it whose predecessors changed, are compared by, and are not kept."""
        if not self.due:
            return ()
        asked: dict[str, SessionTurn] = {}
        if self._kept[entry.turn.trace_id]:
            asked |= {each.turn.trace_id: each for each in self.window.before(entry)}
        for trace_id in affected:
            if (after := self.window.get(trace_id)) is not None:
                asked |= {each.turn.trace_id: each for each in self.window.before(after)}
                asked[trace_id] = after
        return tuple(each for trace_id, each in asked.items() if trace_id not in self._kept)

    def compared(self, entry: SessionTurn) -> Iterator[Outcome]:
        """The outcomes of a turn beside those before it; none where its own sketches are not there."""
        if not (own := self._kept.get(entry.turn.trace_id)):
            return
        before = [
            Before(each.turn.digest, self._kept.get(each.turn.trace_id, {}))
            for each in self.window.before(entry)
        ]
        for each in self.due:
            if (sketch := own.get(each.spec.name)) is not None:
                yield compare(each, sketch, before)

    def let_go(self) -> None:
        if len(self._kept) > KEPT:
            newest = self.window.newest_turns(KEPT)
            self._kept = {each: self._kept[each] for each in newest if each in self._kept}

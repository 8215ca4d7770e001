"""The one way in which scores reach a tool; the tool's own file says what its requests look like."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from collector.base.errors import Undecodable
from collector.log.port import Position
from collector.records.signal_batch import Published
from collector.sinks.port import Refused
from collector.sinks.writeback.batches import MOST, Written
from collector.sinks.writeback.score import (
    ScoreShape,
    WrittenScore,
    WrittenSubject,
    is_asked_for,
    score_of,
)
from collector.sinks.writeback.set_aside import SetAside

KNOWN = 100_000  # the newest writes that are remembered: what they wrote can be taken away again


class ScoreWriter:
    """Brings the scores of signals to a tool, each to its one place (`SetsAside`).

    `wait`: seconds for which scores wait for their trace or session. `clock`: seconds of a clock that never goes back.
    """

    def __init__(
        self, shape: ScoreShape, *, wait: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._shape = shape
        self.clock = clock
        self._aside = SetAside(wait)
        self._places: OrderedDict[str, WrittenSubject] = OrderedDict()
        """Where the newest writes of this process are, by key."""
        self._unplaceable = 0

    @property
    def waiting(self) -> Collection[Position]:
        return self._aside.positions

    @property
    def unmatched(self) -> int:
        """Signals so far whose trace or session the tool never had."""
        return self._aside.given_up + self._unplaceable

    async def write(self, scores: Sequence[WrittenScore], written: Written) -> None:
        """Write or take away each score, no two of which have the same key; `written` says what became of them.

        Raises Retryable: not all of them could be written now.
        """
        raise NotImplementedError

    async def deliver(self, signals: Sequence[Published]) -> None:
        scores, refused, unplaceable = self._scores(signals)
        ready = [each for each in scores if each.subject not in self._aside]
        written = await self._write(ready)
        now = self.clock()
        missing = [each for each in ready if each.subject in written.missing]
        behind = [each for each in scores if each.subject in self._aside]
        for each in (*missing, *behind):
            if each.is_gone:  # there is nothing to take away where there is no subject
                self._aside.drop(each.key)
            else:
                self._aside.put(each, now)
        self._unplaceable += unplaceable
        refused |= written.refused
        if refused:
            raise Refused(refused)

    async def again(self) -> None:
        """Try what was set aside and is due. Raises Retryable: not now. Raises Refused: some can never be written."""
        written = await self._write(self._aside.due(self.clock(), MOST))
        for subject in written.missing:
            self._aside.is_missing(subject, self.clock())
        if written.refused:
            raise Refused(written.refused)

    def forget(self, partition: int) -> None:
        self._aside.forget(partition)

    def _scores(
        self, signals: Iterable[Published]
    ) -> tuple[Collection[WrittenScore], dict[Position, str], int]:
        """The newest of each key, in the order of the log; what is not a signal, and how many have no place."""
        newest: dict[str, WrittenScore] = {}
        refused: dict[Position, str] = {}
        unplaceable = 0
        for each in signals:
            try:
                if not is_asked_for(each, self._shape):
                    continue
                score = score_of(each, self._shape)
            except Undecodable as error:
                refused[each.position] = str(error)
                continue
            if score is None:
                unplaceable += each.header.outcome == "scored" and each.header.method != "external"
            elif self._is_news(score, newest):
                newest.pop(score.key, None)
                newest[score.key] = score
        return newest.values(), refused, unplaceable

    def _is_news(self, score: WrittenScore, newest: Collection[str]) -> bool:
        """Whether the tool must hear of it."""
        if not self._shape.replaces:
            return not score.is_gone and score.key not in newest and score.key not in self._places
        return not score.is_gone or score.key in newest or self._may_stand(score)

    def _may_stand(self, score: WrittenScore) -> bool:
        """Whether the tool may have an earlier score of this key. Most subjects never had one: nothing is sent then."""
        if score.key in self._places or score.subject in self._aside:
            return True
        return score.signal.scope == "trace" and score.signal.revision > 0

    async def _write(self, scores: Sequence[WrittenScore]) -> Written:
        written = Written()
        if not scores:
            return written
        moved = [
            replace(each, subject=old, value=None, error=None)
            for each in scores
            if (old := self._places.get(each.key, each.subject)) != each.subject
        ]
        if moved:  # their session has another newest trace now
            await self.write(moved, Written())
        await self.write(scores, written)
        for each in scores:
            if each.subject not in written.missing:
                self._aside.drop(each.key)
            if written.is_written(each):
                self._remember(each)
        return written

    def _remember(self, score: WrittenScore) -> None:
        self._places.pop(score.key, None)
        if score.is_gone:
            return
        self._places[score.key] = score.subject
        if len(self._places) > KNOWN:
            self._places.popitem(last=False)

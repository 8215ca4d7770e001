"""Three readers fill the index, groups `api.traces`, `api.signals` and `api.feedback`.

Every new signal is offered to the live stream, and feedback is joined with what it is about.

    1. poll
    2. index the batch, in a thread
    3. offer new signals to the live stream
    4. sync the index and commit, at most once a second

A crash between 2 and 4 reads records again; the index takes the same record twice without a change.
"""

import asyncio
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from collector.api.evaluation_table import DueScore
from collector.api.families import ApiFamilies
from collector.api.feedback_table import Matching
from collector.api.index import Index, IndexResult
from collector.api.stream import Stream
from collector.base import watch
from collector.base.clock import Clock
from collector.base.retry import Retry
from collector.base.telemetry import OTHER, Telemetry
from collector.base.thread_callers import ThreadCallers
from collector.base.watch import PartEnded
from collector.log.consumer import Consumer
from collector.log.port import (
    BACKGROUND_LINGER,
    FEEDBACK,
    SIGNALS,
    TRACES,
    Batch,
    Log,
    New,
    Record,
)
from collector.records.external import EvaluationRules
from collector.records.signal_batch import signal_records

MOST_AGENTS = 32  # of a service; the feedback of others counts under `_other`
MOST_NAMES = 64  # of a service; the same


Joined = Callable[[str, str, str], None]
"""(service, session id, name of the feedback): it was joined with this session."""


class FeedbackCounts:
    """`spanwise_feedback_total`, `spanwise_external_evaluations_total`, and `_unmatched_total` of both."""

    def __init__(self, telemetry: Telemetry, families: ApiFamilies, joined: Joined) -> None:
        self._joined = joined
        self._telemetry = telemetry
        self._families = families
        self._known: defaultdict[tuple[str, Hashable], set[str]] = defaultdict(set)

    def score(self, service: str, agent: str, evaluator: str) -> None:
        self._families.external.labels(*self._labels(service, agent, "evaluator", evaluator)).inc()

    def matched(self, found: Matching) -> None:
        for each in found.matched:
            labels = self._labels(each.service, each.agent, "name", each.name)
            self._families.feedback.labels(*labels, each.kind, each.opinion).inc()
            self._joined(each.service, each.session_id, each.name)
        self._families.feedback_unmatched.inc(found.given_up)
        self._families.external_unmatched.inc(found.scores_given_up)

    def _labels(self, service: str, agent: str, kind: str, name: str) -> Iterator[Hashable]:
        """The service, and what of it is told apart: so many agents, and so many names of each kind."""
        of = self._telemetry.service(service)
        yield of
        for what, value, most in (("agent", agent, MOST_AGENTS), (kind, name, MOST_NAMES)):
            known = self._known[what, of]
            if len(known) < most:
                known.add(value)
            yield value if value in known else OTHER


# One thread that does work in order. Where it ends its callers hear of it; an executor's would wait forever.

_T = TypeVar("_T")
_Work = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class OwnThread:
    """Made on the event loop; ended by `close`."""

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._callers = ThreadCallers(f"the thread `{name}`", PartEnded)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], _T]) -> _T:
        """Do the work in the thread, after all that was given before. Raises PartEnded: the thread has ended."""
        return await self._callers.answered(lambda future: self._queue.put((work, future)))

    async def close(self) -> None:
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            while (given := self._queue.get()) is not None:
                self._do(*given)
        except BaseException as error:  # noqa: BLE001 - else its callers would wait forever
            self._callers.ended(error)

    def _do(self, work: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        try:
            answer = partial(future.set_result, work())
        except Exception as error:  # noqa: BLE001 - its caller's
            answer = partial(future.set_exception, error)
        self._callers.in_loop(lambda: None if future.done() else answer())


TRACES_GROUP, SIGNALS_GROUP, FEEDBACK_GROUP = "api.traces", "api.signals", "api.feedback"
COMMIT_EVERY = 1.0
"""Seconds."""


@dataclass(slots=True, eq=False, kw_only=True)
class Feed:
    """The readers, and the thread in which the index is written."""

    log: Log
    index: Index
    stream: Stream
    telemetry: Telemetry
    clock: Clock
    feedback: FeedbackCounts  # counts what is joined
    max_age: float  # seconds after which nothing is joined with a session
    scores: EvaluationRules  # how those of others are read
    # One thread: SQLite has one writer, and the event loop never waits for its disk.
    thread: OwnThread = field(default_factory=lambda: OwnThread("index"), init=False)

    async def run(self, stopping: asyncio.Event) -> None:
        """Fill the index; ends soon after `stopping`, with everything committed that was indexed."""
        readers = (
            _TopicFeed(self, TRACES_GROUP, TRACES, self.index.take_traces),
            _TopicFeed(self, SIGNALS_GROUP, SIGNALS, self.index.take_signals),
            _FeedbackReader(self),
        )
        try:
            self.stream.begin()
            await watch.together("indexing", stopping, *(each.run(stopping) for each in readers))
        finally:
            await self.thread.close()


class _TopicFeed(Consumer):
    """Puts the records of one topic into the index."""

    def __init__(
        self,
        feed: Feed,
        group: str,
        topic: str,
        index: Callable[[Sequence[Record]], IndexResult],
    ) -> None:
        super().__init__(
            log=feed.log,
            group=group,
            topic=topic,
            retry=Retry(f"The index's reader of {topic}"),
            telemetry=feed.telemetry,
            linger=BACKGROUND_LINGER,
        )
        self._feed = feed
        self._index = index
        self._committed_at = feed.clock()

    async def take(self, batch: Batch) -> None:
        if not batch.records:
            return
        taken = await self._feed.thread.run(partial(self._index, batch.records))
        self._feed.stream.publish(taken.signals)
        for position, error in taken.undecodable:
            self._poison.unprocessable(position, error)
        for record in batch.records:
            self._offsets.done(record.position)

    async def commit(self) -> None:
        """At most once a second."""
        is_due = abs(self._feed.clock() - self._committed_at) >= COMMIT_EVERY
        if is_due and self._offsets.commits():
            await self._commit()
            self._committed_at = self._feed.clock()

    async def finish(self) -> None:
        await self._commit()

    async def _commit(self) -> None:
        """The index is on the disk before the log hears that its records need not be read again."""
        await self._feed.thread.run(self._feed.index.sync)
        await super().commit()


class _FeedbackReader(_TopicFeed):
    """Puts feedback into the index, and looks about once a second whether what it is about has come.

    Scores of others that were joined become signals here.
    """

    def __init__(self, feed: Feed) -> None:
        super().__init__(feed, FEEDBACK_GROUP, FEEDBACK, feed.index.take_feedback)
        self._joins = self._log_port.counts_offsets
        self._is_waiting = True  # whether any waits, as far as is known: after a start, perhaps
        self._matched_at = float("-inf")

    async def take(self, batch: Batch) -> None:
        await super().take(batch)
        self._is_waiting |= bool(batch.records)
        now = self._feed.clock()
        if self._is_waiting and abs(now - self._matched_at) >= COMMIT_EVERY:
            self._matched_at = now
            feed, index = self._feed, self._feed.index
            ages = {"max_age": feed.max_age, "scores_max_age": feed.scores.max_age}
            found = await feed.thread.run(lambda: index.match(now=now, **ages))
            self._is_waiting = found.is_waiting
            feed.feedback.matched(found)
            # Of thousands some wait for the next look: what others say must be read meanwhile.
            while (due := await feed.thread.run(lambda: index.due_scores(feed.scores))) is not None:
                await self._publish(due)
                if self._feed.clock() - now >= COMMIT_EVERY:
                    break

    async def _publish(self, due: Sequence[DueScore]) -> None:
        new: list[New] = []
        session = attrgetter("signal.service", "signal.session_id")
        for _, of_session in groupby(sorted(due, key=session), key=session):
            new += signal_records([each.ready for each in of_session], joined=self._joins)
        await self._retry.log("publish scores of others", lambda: self._log_port.write(new))
        await self._feed.thread.run(lambda: self._feed.index.published(due))
        for each in due:
            self._feed.feedback.score(each.signal.service, each.signal.agent, each.signal.evaluator)

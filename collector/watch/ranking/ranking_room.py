"""The reader that ranks sessions and traces among earlier ones, and appends the signals to topic `signals`.

    poll -> rank what changed, put what closed into its histories
         -> one write: the batch as it was decided, the histories, the signals, the commit

Exactly one process runs it (role `publish`), because the histories of an agent and of a task span all partitions. They
survive restarts in topic `windows`. On a log without transactions a write can end anywhere: the batch is first in
it, in one record, and who finds the batch without its commit writes all of it again, ranking nothing. So a record that
is read again was ranked in one history only, and its signal is the same byte for byte.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from collector.base.errors import RecordTooLarge, Undecodable
from collector.base.retry import Retry
from collector.base.telemetry import Telemetry
from collector.base.time_slice import TimeSlice
from collector.log.consumer import Consumer
from collector.log.port import (
    TRACES,
    Assigned,
    Batch,
    Commit,
    Log,
    New,
    Record,
)
from collector.log.state_table import Parts, StateTable, read_back
from collector.records.signal import redacted
from collector.records.signal_batch import headers_of, made, made_before, signal_records
from collector.records.trace_views import work_in
from collector.records.traces import RunawayRecord, WorkRecord
from collector.records.windows import RankedBatch, RankedSignal
from collector.watch.families import RankingFamilies
from collector.watch.ranking.ranker import RankedSession, Ranker
from collector.watch.ranking.runaways import ModelCallCount
from evaluators.plan import Configured

GROUP = "ranking"
MAX_RECORDS = 64
"""Records of one poll: they and their signals are written at once."""
LINGER = 0.5  # seconds that a record may wait for others: a history is written once for all of them


class RankingRoom(Consumer):
    def __init__(
        self,
        *,
        log: Log,
        ranked: Sequence[Configured],
        telemetry: Telemetry,
        redact: bool = False,
    ) -> None:
        """`ranked` are the evaluators; `redact`: signals leave without texts (`redaction.content: drop`)."""
        super().__init__(
            log=log,
            group=GROUP,
            topic=TRACES,
            retry=Retry("The reader that ranks sessions"),
            telemetry=telemetry,
            max_records=MAX_RECORDS,
            linger=LINGER,
        )
        self._ranked = ranked
        self._redact = redact
        self._joins = log.counts_offsets
        self._families = RankingFamilies(telemetry)
        self._ranker = Ranker(ranked)
        self._slice = TimeSlice()
        self._is_restored = False
        self._next: dict[int, int] = {}
        """By partition, the offset below which everything is decided."""
        self._signals: list[RankedSignal] = []
        self._closed: list[WorkRecord] = []
        self._calls: list[ModelCallCount] = []
        self._behind: set[int] = set()
        """Partitions of a batch that is written again, whose commits are missing."""
        self._batches: StateTable[str, RankedBatch] = StateTable(
            "ranked_last",
            str,
            RankedBatch,
            encode=lambda _: self._last,
            restore=self._restore_batch,
        )
        self._last: RankedBatch | None = None
        """The batch that was found at the start, until it is known whether it was written to its end."""

    async def drain(self) -> None:
        """Rank what has closed, to the end of `traces`. Call it when `run` has ended."""
        self._retry.stopping = asyncio.Event()
        async with self._joined():
            await self._read_to_end()

    def join(self) -> None:
        super().join()
        self._is_restored = False

    async def revoke(self, partition: int) -> None:
        """Another process may own the histories now: they are read back with the next partition."""
        self._is_restored = False

    async def assign(self, assigned: Assigned) -> None:
        """Read the histories back, once for all partitions; write the last batch again if its commit is missing."""
        if not self._is_restored:
            await self._retry.log("read the histories back", self._restore)
            self._is_restored = True
        if self._last is not None and assigned.partition in self._last.partitions:
            if (assigned.offset or 0) < self._next[assigned.partition]:
                self._write_again(self._last)
            self._last = None

    async def take(self, batch: Batch) -> None:
        """Rank the sessions that changed, in the order of the records."""
        for count in batch.lost.values():
            self._families.dropped.labels("expired").inc(count)
        for record in batch.records:
            self._take(record)
            self._offsets.done(record.position)
            await self._slice.give_way()

    async def commit(self) -> None:
        commits = self._offsets.commits()
        records: list[New] = []
        if self._signals or self._closed or self._calls:
            if self._last is not None:
                self._write_again(self._last)
            records = self._records(self._behind | {each.partition for each in commits})
        if not records and not commits:
            return
        await self._retry.log("write ranked signals", lambda: self._write(records, commits))
        self._offsets.committed(commits)
        self._signals, self._closed, self._calls, self._behind = [], [], [], set()
        for table in self._ranker.tables:
            table.written()
        for kind, count in self._ranker.evicted().items():
            self._families.dropped.labels(f"max_{kind}").inc(count)
        for kind, count in zip(("agents", "tasks"), self._ranker.sizes, strict=True):
            self._families.histories.labels(kind).set(count)

    def _take(self, record: Record) -> None:
        _, partition, offset = record.position
        if offset < self._next.get(partition, 0):
            return
        self._next[partition] = offset + 1
        try:
            work = work_in(record)
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
            return
        if not isinstance(work, WorkRecord | RunawayRecord):
            return
        ranked = self._ranker.take(work)
        if ranked.is_closed and isinstance(work, WorkRecord):
            self._closed.append(work)
        if ranked.call is not None:
            self._calls.append(ranked.call)
        self._signals += ranked_signals(ranked, redact=self._redact)

    def _write_again(self, last: RankedBatch) -> None:
        self._signals[:0] = last.signals
        self._closed[:0] = last.closed
        self._calls[:0] = [ModelCallCount(*each) for each in last.calls]
        self._behind = set(last.partitions)
        self._last = None

    def _records(self, partitions: Collection[int]) -> list[New]:
        """In the order of the write, which commits these partitions."""
        batch = RankedBatch(
            next_offsets=self._next,
            partitions=tuple(sorted(partitions)),
            signals=tuple(self._signals),
            closed=tuple(self._closed),
            calls=tuple(self._calls),
            recent=self._ranker.recent,
        )
        return [
            self._batches.record("", batch),
            *(record for table in self._ranker.tables for record in table.pending()),
            *ranked_records(self._signals, joined=self._joins),
        ]

    async def _write(self, records: Sequence[New], commits: Sequence[Commit]) -> None:
        try:
            await self._log_port.write(records, commits)
        except RecordTooLarge:
            for record in records:
                try:
                    await self._log_port.write((record,))
                except RecordTooLarge as error:
                    self._poison.too_large(record.topic, record.key, error)
            await self._log_port.write((), commits)

    async def _restore(self) -> None:
        """Take back the histories of topic `windows`, the one that changed longest ago first."""
        self._ranker = Ranker(self._ranked)
        self._next, self._last, self._behind = {}, None, set()
        self._signals, self._closed, self._calls = [], [], []
        await read_back(self._log_port, (*self._ranker.tables, self._batches), self._poison)

    def _restore_batch(self, _key: str, batch: RankedBatch, _parts: Parts) -> None:
        self._next = dict(batch.next_offsets)
        self._ranker.restore_recent(batch.recent)
        for each in batch.closed:  # a write that ended early left them out of some histories
            self._ranker.put(each)
        for each in batch.calls:
            self._ranker.put_call(ModelCallCount(*each))
        self._last = batch


def ranked_signals(ranked: RankedSession, *, redact: bool = False) -> list[RankedSignal]:
    """The signals as bytes; `redact`: they leave without texts."""
    found: list[RankedSignal] = []
    for each in ranked.signals:
        signal = redacted(each) if redact else each
        first = signal.final if ranked.is_first is None else ranked.is_first
        ready = made(signal, first=first, start=ranked.start)
        key = signal.session_id.encode()
        found.append(RankedSignal(key=key, value=ready.json, headers=headers_of(ready)))
    return found


def ranked_records(signals: Iterable[RankedSignal], *, joined: bool) -> Iterator[New]:
    for _, of_session in groupby(signals, key=lambda each: each.key):
        ready = [made_before(each.value, each.headers) for each in of_session]
        yield from signal_records(ready, joined=joined)

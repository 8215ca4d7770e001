"""One group's view of a topic: the changes and the records of a membership, as batches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord, TopicPartition
from msgspec.structs import replace

from collector.base.errors import LogUnavailable
from collector.log.commits import Committed
from collector.log.kafka.cluster import APPEND_TIME, CLOCKS_DIFFER, Cluster
from collector.log.kafka.member import Member
from collector.log.kafka.partition_reader import PartitionReader
from collector.log.kafka.records import is_fence, record_of
from collector.log.kafka.rights import READ, failure
from collector.log.port import Assigned, Batch, Commit, Record

Fence = Callable[[str, str, Sequence[int]], Awaitable[None]]
_Records = Mapping[TopicPartition, Sequence[ConsumerRecord]]
STOP = 5.0
"""Seconds that leaving the group may take."""
_log = logging.getLogger(__name__)


class KafkaReader:
    def __init__(
        self,
        cluster: Cluster,
        partition_reader: PartitionReader,
        group: str,
        topic: str,
        *,
        fence: Fence,
        closed: Callable[[KafkaReader], None],
    ) -> None:
        self.group = group
        self.topic = topic
        self._cluster = cluster
        self._partition_reader = partition_reader
        self._fence = fence
        self._closed = closed
        self._member: Member | None = None
        self._next: dict[int, int] = {}
        self._last: dict[int, float] = {}
        self._fetching: asyncio.Task[_Records] | None = None
        self._pending_commits: dict[int, Commit] = {}
        self._lost_partitions: set[int] = set()
        """Lost with a membership that failed, and not reported by a poll yet."""
        self._open = True
        self._ending = asyncio.Event()

    @property
    def owned(self) -> frozenset[int]:
        return frozenset() if self._member is None else frozenset(self._member.owned)

    @property
    def behind(self) -> int:
        member = self._member
        if member is None:
            return 0
        return sum(
            max(0, end - (member.committed.get(partition, Committed()).offset or 0))
            for partition, (end, _) in member.fetched_ends.items()
            if partition in member.owned
        )

    def places(self, *, unread: bool) -> dict[int, int]:
        """By owned partition, the group's commit; `unread`: the next offset to be read.

        Raises LogUnavailable: it is not a member of its group now.
        """
        member = self._member
        if member is None:
            raise LogUnavailable(f"`{self.group}` has not joined its group")
        commits = {
            each: member.committed.get(each, Committed()).offset or 0 for each in member.owned
        }
        if not unread:
            return commits
        return {each: max(low, self._next.get(each, 0)) for each, low in commits.items()}

    async def poll(self, *, max_records: int = 256, timeout: float = 1.0) -> Batch:
        if not self._open:
            return self._end()
        try:
            member = await self._joined()
            member.check()
            batch = await self._changes(member)
            if batch is None:
                batch = await self._records(member, max_records, timeout)
        except KafkaError as error:
            await self._leave()
            raise LogUnavailable(failure(error, READ)) from error
        return batch

    async def commit(self, commits: Sequence[Commit], *, must: bool) -> None:
        """Store these commits; one that fails is stored with the next ones, or at the next poll.

        Raises LogUnavailable: not stored, and it `must` be.
        """
        self._pending_commits |= {each.partition: each for each in commits}
        try:
            await self._commit_pending()
        except LogUnavailable:
            if must:
                raise

    async def close(self) -> None:
        """A poll that waits returns its partitions as revoked."""
        if not self._open:
            return
        self._open = False
        self._ending.set()
        self._closed(self)
        with suppress(LogUnavailable):
            await self._commit_pending()
        member = self._member
        if member is not None:
            member.revoked_pending |= member.owned
            member.owned.clear()
            await self._drop_fetch()
            await member.stop(min(STOP, 2 * self._cluster.deadline))

    async def _joined(self) -> Member:
        if self._member is None:
            self._cluster.reached()
            member = Member(self._cluster, self.group, self.topic)
            try:
                await self._cluster.within(member.start(), "Kafka did not let us join in time")
            except BaseException:
                await member.stop(1.0)
                raise
            member.revoked_pending |= self._lost_partitions
            self._lost_partitions.clear()
            self._member = member
        return self._member

    async def _leave(self) -> None:
        """Leave the group: the next poll reports the owned partitions as revoked and joins again."""
        member = self._member
        if member is None:
            return
        await self._drop_fetch()
        lost = member.revoked_pending | member.owned
        member.owned.clear()
        await member.stop(min(STOP, 2 * self._cluster.deadline))
        self._member = None
        self._next.clear()
        self._pending_commits.clear()
        self._lost_partitions |= lost

    def _end(self) -> Batch:
        member = self._member
        revoked = () if member is None else member.take_revoked()
        self._next.clear()
        if not revoked:
            raise LogUnavailable("the reader is closed")
        return Batch(revoked=revoked)

    async def _changes(self, member: Member) -> Batch | None:
        """The partitions that a rebalance revoked and assigned; None: no change."""
        member.changed.clear()
        revoked: tuple[int, ...] = ()
        if member.revoked_pending:
            with suppress(LogUnavailable):
                await self._commit_pending()
            revoked = member.take_revoked()
            self._pending_commits.clear()
            self._next.clear()
            await self._drop_fetch()
        assigned_pending = member.assigned_pending
        if assigned_pending is None:
            return Batch(revoked=revoked) if revoked else None
        try:
            assigned, starts, lost = await self._assignment(member, assigned_pending)
        except LogUnavailable:
            if revoked:
                return Batch(revoked=revoked)
            raise
        if member.assigned_pending is not assigned_pending:  # it changed again meanwhile
            return Batch(revoked=revoked)
        await self._drop_fetch()
        member.start_at(starts)
        self._next = dict(starts)
        self._last.clear()
        return Batch(revoked=revoked, assigned=tuple(assigned), lost=lost)

    async def _assignment(
        self, member: Member, partitions: set[int]
    ) -> tuple[list[Assigned], dict[int, int], dict[int, int]]:
        order = sorted(partitions)
        if not order:
            return [], {}, {}
        await self._fence(self.group, self.topic, order)
        late = "Kafka did not give the group's position in time"
        member.committed = await self._cluster.within(member.read_commits(order), late)
        oldest = await self._partition_reader.beginnings(self.topic, order)
        assigned: list[Assigned] = []
        starts: dict[int, int] = {}
        lost: dict[int, int] = {}
        for partition in order:
            offset, metadata = member.committed.get(partition, Committed())
            assigned.append(Assigned(partition=partition, offset=offset, metadata=metadata))
            starts[partition] = max(oldest[partition], offset or 0)
            if offset is not None and offset < oldest[partition]:
                lost[partition] = self._count_gap(partition, offset, oldest[partition])
        return assigned, starts, lost

    def _count_gap(self, partition: int, expected: int, oldest: int) -> int:
        self._cluster.families.gap_records.labels(self.topic).inc(oldest - expected)
        _log.error(
            "`%s` partition %d: %d records expired before `%s` had read them.",
            self.topic,
            partition,
            oldest - expected,
            self.group,
        )
        return oldest - expected

    async def _records(self, member: Member, max_records: int, timeout: float) -> Batch:
        with suppress(LogUnavailable):
            await self._commit_pending()
        if not member.owned:
            member.look_for_topic()
            await self._wait(member, timeout)
            return self._without_records(member)
        fetching = self._fetching
        if fetching is None:
            wait = max(1, int(timeout * 1000))
            fetching = asyncio.create_task(
                member.consumer.getmany(timeout_ms=wait, max_records=max_records)
            )
            self._fetching = fetching  # kept across polls: a cancelled poll loses nothing
        await self._wait(member, timeout + 1.0, fetching)
        if (
            not self._open
            or member.revoked_pending
            or fetching is not self._fetching
            or not fetching.done()
        ):
            return self._without_records(member)
        self._fetching = None
        records, lost = await self._accept(member, fetching.result())
        return Batch(records=records, ends=self._ends(member), lost=lost)

    async def _wait(
        self, member: Member, timeout: float, fetching: asyncio.Task[_Records] | None = None
    ) -> None:
        changed = asyncio.ensure_future(member.changed.wait())
        ending = asyncio.ensure_future(self._ending.wait())
        waiting: set[asyncio.Future[object]] = {changed, ending}  # pyright: ignore[reportAssignmentType]
        try:
            await asyncio.wait(
                waiting | ({fetching} if fetching else set()),
                timeout=timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for each in waiting:
                each.cancel()

    def _without_records(self, member: Member) -> Batch:
        if not self._open:
            return self._end()
        if member.revoked_pending:
            return Batch()
        return Batch(ends=self._ends(member))

    async def _accept(
        self, member: Member, fetched: _Records
    ) -> tuple[list[Record], dict[int, int]]:
        records: list[Record] = []
        lost: dict[int, int] = {}
        for place, raws in fetched.items():
            partition = place.partition
            expected = self._next.get(partition)
            if expected is None or partition not in member.owned or not raws:
                continue
            if raws[0].offset > expected:
                oldest = (await self._partition_reader.beginnings(self.topic, [partition]))[
                    partition
                ]
                if oldest > expected:
                    lost[partition] = self._count_gap(partition, expected, oldest)
            records += [
                self._in_time(record_of(self.topic, raw))
                for raw in raws
                if not is_fence(self.topic, raw)
            ]
            self._next[partition] = raws[-1].offset + 1
            if raws[-1].timestamp_type == APPEND_TIME:
                self._cluster.heard(raws[-1].timestamp / 1000)
        return records, lost

    def _in_time(self, record: Record) -> Record:
        """The record with its log time, which never goes back, though a broker's clock may."""
        partition = record.position.partition
        last = self._last.get(partition, 0.0)
        if record.time >= last:
            self._last[partition] = record.time
            return record
        return replace(record, time=last)

    def _ends(self, member: Member) -> dict[int, float]:
        ends: dict[int, float] = {}
        for partition in member.owned:
            end, sent_at = member.fetched_ends.get(partition, (None, 0.0))
            if end is not None and self._next.get(partition, -1) >= end:
                sent_at = min(sent_at, self._cluster.clock())  # it may have been set since
                ends[partition] = max(sent_at - CLOCKS_DIFFER, self._last.get(partition, 0.0))
        return ends

    async def _drop_fetch(self) -> None:
        fetching, self._fetching = self._fetching, None
        if fetching is not None:
            fetching.cancel()
            await asyncio.wait([fetching], timeout=1.0)
            if fetching.done() and not fetching.cancelled():
                fetching.exception()

    async def _commit_pending(self) -> None:
        if self._member is None or not self._pending_commits:
            return
        pending = dict(self._pending_commits)
        await self._member.commit(list(pending.values()))
        self._pending_commits = {
            p: each for p, each in self._pending_commits.items() if pending.get(p) is not each
        }

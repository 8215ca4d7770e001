"""Apache Kafka as the log, shared by several processes. See `port.Log` for the contract.

Differences from a log that one process owns: records are written before their commit, not with it; retention is the
topics' own, so `release` does nothing; other programs may write `spans` (an OpenTelemetry Collector) and read
`signals` (they skip the internal headers `spanwise_*`).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable, Sequence

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from collector.base.clock import Clock
from collector.base.errors import LogUnavailable
from collector.base.telemetry import Telemetry
from collector.config.tree import KafkaLogConfig
from collector.log.families import LogFamilies
from collector.log.kafka.client import client_settings, ended, prepare_aiokafka
from collector.log.kafka.cluster import Bootstrap, Cluster
from collector.log.kafka.lag import GroupLags
from collector.log.kafka.member import encode_metadata
from collector.log.kafka.partition_reader import PartitionReader
from collector.log.kafka.reader import KafkaReader
from collector.log.kafka.records import GUARDED, Fenced, fence, state_behind
from collector.log.kafka.rights import READ, failure
from collector.log.kafka.writer import KafkaWriter
from collector.log.port import SPANS, Commit, Lag, New, Position, Range, Record

DEADLINE = 10.0  # seconds that a write, a commit or a read beside the groups may take
CLOSE = 5.0  # seconds that each client may take to leave; the broker forgets a member that did not leave by itself
_log = logging.getLogger(__name__)


class KafkaLog:
    counts_offsets = False
    reads_parts = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._bootstrap = Bootstrap(cluster)
        self._intake = KafkaWriter(cluster, compression=None)
        """For `spans`: compressing would be most of a receiver's work. A broker can do it (`compression.type`)."""
        self._writer = KafkaWriter(cluster, compression="zstd")
        self._partition_reader = PartitionReader(cluster)
        self._lags = GroupLags(cluster, self._partition_reader)
        self._readers: set[KafkaReader] = set()
        self._replay_ends: set[asyncio.Task[int]] = set()
        """Replays that do not know their end yet: writes wait for them."""
        self._open = True

    @classmethod
    async def open(
        cls,
        settings: KafkaLogConfig,
        *,
        clock: Clock,
        telemetry: Telemetry,
        deadline: float = DEADLINE,
    ) -> KafkaLog:
        """Connect. When no broker answers, trying goes on in the background, and every call raises LogUnavailable.

        Raises ConfigError: the servers refuse the connection, or the topics do not fit.
        """
        prepare_aiokafka()
        client = client_settings(
            settings.bootstrap_servers or "", settings.security, section="log.kafka"
        )
        log = cls(
            Cluster(
                settings=settings,
                client=client,
                clock=clock,
                families=LogFamilies(telemetry),
                deadline=deadline,
                owner=os.urandom(8),
            )
        )
        await log._bootstrap.begin()
        return log

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        """See `port.Log.write`: topic after topic, in the order in which the call names them, then the commits.

        State of a partition that this process no longer owns is not written: its position has offset -1.
        """
        self._check_open()
        for commit in commits:
            self._check_partition(commit.topic, commit.partition)
        if self._replay_ends:
            await asyncio.wait(self._replay_ends, timeout=self._cluster.deadline)
        stale = {index for index, new in enumerate(records) if self._is_stale(new)}
        fresh = [new for index, new in enumerate(records) if index not in stale]
        writer = self._intake if all(new.topic == SPANS for new in fresh) else self._writer
        written = iter(await writer.write(fresh) if fresh else ())
        positions = [
            Position(new.topic, new.partition or 0, -1) if index in stale else next(written)
            for index, new in enumerate(records)
        ]
        await self._commit(commits, must=not records)
        return positions

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> KafkaReader:
        self._cluster.name(topic)
        if self._reader(group, topic) is not None:
            raise ValueError(f"group `{group}` reads `{topic}` already")
        reader = KafkaReader(
            self._cluster,
            self._partition_reader,
            group,
            topic,
            fence=self._fence,
            closed=self._readers.discard,
        )
        self._readers.add(reader)
        return reader

    def replay(self, topic: str, partition: int, since: int | None = None) -> AsyncIterator[Record]:
        self._check_partition(topic, partition)
        end = asyncio.create_task(self.end(topic, partition))
        self._replay_ends.add(end)
        end.add_done_callback(self._end_known)
        return self._replayed(topic, partition, max(0, since or 0), end)

    async def get(self, position: Position) -> Record | None:
        topic, partition, offset = position
        self._check_partition(topic, partition)
        if offset < 0:
            return None
        try:
            raws, _ = await self._partition_reader.fetch_range(topic, partition, offset, size=1)
        except OffsetOutOfRangeError:
            return None
        records = Fenced(topic).through(raws[:1])
        record = next(records, None)
        return record if record is not None and record.position.offset == offset else None

    async def values_of(self, topic: str, ranges: Sequence[Range]) -> list[bytes | None]:
        del topic
        return [None for _ in ranges]

    def release(self, positions: Iterable[Position]) -> None:
        """Does nothing: the topic's retention deletes records."""

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has; the configured number until the cluster has been reached."""
        return self._cluster.partitions(topic)

    async def backlog(self, group: str, topic: str) -> int:
        """In the partitions that this process owns: the sum over processes is all."""
        reader = self._reader(group, topic)
        return 0 if reader is None else reader.behind

    async def lag(self, group: str, topic: str, *, unread: bool = False) -> Lag | None:
        reader = self._reader(group, topic)
        if reader is not None:
            return await self._lags.of_member(reader, unread=unread)
        return await self._lags.without_members(group, topic)

    def begin_shutdown(self) -> None:
        self._cluster.begin_shutdown()

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        async with asyncio.TaskGroup() as group:
            for reader in tuple(self._readers):
                group.create_task(reader.close())
        for task in tuple(self._replay_ends):
            task.cancel()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._bootstrap.end())
            group.create_task(self._intake.close(CLOSE))
            group.create_task(self._writer.close(CLOSE))
            group.create_task(self._partition_reader.close(CLOSE))
            group.create_task(self._lags.close(CLOSE))

    def _check_open(self) -> None:
        if not self._open:
            raise LogUnavailable("the log is closed")

    def _check_partition(self, topic: str, partition: int) -> None:
        if not 0 <= partition < self._cluster.partitions(topic):
            raise ValueError(f"topic `{topic}` has no partition {partition}")

    def _reader(self, group: str, topic: str) -> KafkaReader | None:
        return next((r for r in self._readers if (r.group, r.topic) == (group, topic)), None)

    def _is_stale(self, new: New) -> bool:
        """Whether it is state of a partition that this process does not own: its owner's is newer."""
        guard = GUARDED.get(new.topic)
        if guard is None or callable(new.value) or new.partition is None:
            return False
        reader = self._reader(*guard)
        return reader is not None and new.partition not in reader.owned

    async def _fence(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        state = state_behind(group, topic)
        if state is not None:
            await self._writer.write(
                [fence(state, each, self._cluster.owner) for each in partitions]
            )

    async def _commit(self, commits: Sequence[Commit], *, must: bool) -> None:
        by_reader: dict[tuple[str, str], list[Commit]] = {}
        for commit in commits:
            by_reader.setdefault((commit.group, commit.topic), []).append(commit)
        for (group, topic), mine in by_reader.items():
            reader = self._reader(group, topic)
            if reader is not None:
                await reader.commit(mine, must=must)
            else:
                await self._commit_from_outside(group, mine)

    async def _commit_from_outside(self, group: str, commits: Sequence[Commit]) -> None:
        """For a group without members; the broker refuses the commit while there are any."""
        offsets = {
            TopicPartition(self._cluster.name(each.topic), each.partition): OffsetAndMetadata(
                each.offset, encode_metadata(each.metadata)
            )
            for each in commits
        }
        self._cluster.reached()
        consumer = AIOKafkaConsumer(
            **self._cluster.client, group_id=self._cluster.group(group), enable_auto_commit=False
        )
        try:
            late = f"Kafka did not store the commit of `{group}` in time"
            await self._cluster.within(_commit_by(consumer, offsets), late)
        except KafkaError as error:
            raise LogUnavailable(failure(error, READ)) from error
        finally:
            await ended(asyncio.create_task(consumer.stop()), CLOSE)

    def _end_known(self, task: asyncio.Task[int]) -> None:
        self._replay_ends.discard(task)
        if not task.cancelled():
            task.exception()

    async def end(self, topic: str, partition: int) -> int:
        return (await self._partition_reader.ends(topic, [partition]))[partition]

    async def _replayed(
        self, topic: str, partition: int, offset: int, end: asyncio.Task[int]
    ) -> AsyncIterator[Record]:
        await asyncio.wait([end])
        if end.cancelled():
            raise LogUnavailable("the log is closed")
        last = end.result()
        fenced = Fenced(topic)
        while offset < last:
            self._check_open()
            try:
                raws, following = await self._partition_reader.fetch_range(topic, partition, offset)
            except OffsetOutOfRangeError:
                oldest = (await self._partition_reader.beginnings(topic, [partition]))[partition]
                raws, following = [], max(oldest, offset + 1)
            for record in fenced.through(raws):
                if record.position.offset >= last:
                    return
                yield record
            if following <= offset:
                return
            offset = following


async def _commit_by(
    consumer: AIOKafkaConsumer, offsets: dict[TopicPartition, OffsetAndMetadata]
) -> None:
    await consumer.start()
    consumer.assign(list(offsets))
    await consumer.commit(offsets)

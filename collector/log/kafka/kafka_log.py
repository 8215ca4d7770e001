"""Apache Kafka as the log: what several processes share. See `port.Log` for the contract.

What differs from a log that one process owns: records come before their commit, not with it; retention is the
topics' own, so `release` does nothing; and other programs may write `spans` (an OpenTelemetry Collector) and read
`signals`, whose internal headers `spanwise_*` such readers pass over.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable, Sequence

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from collector.clock import Clock
from collector.config.tree import KafkaLogConfig
from collector.errors import LogUnavailable
from collector.kafka.client import client_settings, ended
from collector.kafka.log_limit import limit_aiokafka_log
from collector.log.kafka.bootstrap import Connecting
from collector.log.kafka.cluster import Link
from collector.log.kafka.member import encode_metadata
from collector.log.kafka.partition_reader import Lookup
from collector.log.kafka.reader import KafkaReader
from collector.log.kafka.records import GUARDED, Fenced, fence, state_behind
from collector.log.kafka.writer import Writer
from collector.log.port import SPANS, Commit, New, Position, Record
from collector.telemetry import Telemetry

DEADLINE = 10.0
"""Seconds that a write, a commit or a look-up may take."""
CLOSE = 5.0
_log = logging.getLogger(__name__)


class KafkaLog:
    """See `port.Log`. Made by `open`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._connecting = Connecting(link)
        self._intake = Writer(link, compression=None)
        """What receivers write: compressing would be most of their work. A broker can do it (`compression.type`)."""
        self._writer = Writer(link, compression="zstd")
        self._lookup = Lookup(link)
        self._readers: set[KafkaReader] = set()
        self._looking: set[asyncio.Task[int]] = set()
        """Replays that have not learnt yet where they end: writes wait for them."""
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
        """Connect; when no broker answers, go on trying in the background: every call says LogUnavailable until then.

        Raises:
            ConfigError: the servers refuse us, or the topics do not fit.
        """
        limit_aiokafka_log()
        client = client_settings(
            settings.bootstrap_servers or "", settings.security, section="log.kafka"
        )
        log = cls(
            Link(
                settings=settings,
                client=client,
                clock=clock,
                telemetry=telemetry,
                deadline=deadline,
                owner=os.urandom(8),
            )
        )
        await log._connecting.begin()
        return log

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        """See `port.Log.write`: topic after topic, in the order in which the call names them, then the commits.

        State of a partition that this process does not own any more is not written: its position has offset -1.
        """
        self._check_open()
        for commit in commits:
            self._known(commit.topic, commit.partition)
        if self._looking:
            await asyncio.wait(self._looking, timeout=self._link.deadline)
        stale = {place for place, new in enumerate(records) if self._is_anothers(new)}
        fresh = [new for place, new in enumerate(records) if place not in stale]
        writer = self._intake if all(new.topic == SPANS for new in fresh) else self._writer
        written = iter(await writer.write(fresh) if fresh else ())
        positions = [
            Position(new.topic, new.partition or 0, -1) if place in stale else next(written)
            for place, new in enumerate(records)
        ]
        await self._commit(commits, must=not records)
        return positions

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> KafkaReader:
        """See `port.Log.read`.

        Raises:
            ValueError: the group reads the topic already.
        """
        self._link.name(topic)
        if self._reader(group, topic) is not None:
            raise ValueError(f"group `{group}` reads `{topic}` already")
        reader = KafkaReader(
            self._link,
            self._lookup,
            group,
            topic,
            fence=self._fence,
            closed=self._readers.discard,
        )
        self._readers.add(reader)
        return reader

    def replay(self, topic: str, partition: int, since: int | None = None) -> AsyncIterator[Record]:
        """See `port.Log.replay`."""
        self._known(topic, partition)
        end = asyncio.create_task(self._end(topic, partition))
        self._looking.add(end)
        end.add_done_callback(self._looked)
        return self._replayed(topic, partition, max(0, since or 0), end)

    async def get(self, position: Position) -> Record | None:
        """See `port.Log.get`."""
        topic, partition, offset = position
        self._known(topic, partition)
        if offset < 0:
            return None
        try:
            raws, _ = await self._lookup.stretch(topic, partition, offset, size=1)
        except OffsetOutOfRangeError:
            return None
        records = Fenced(topic).through(raws[:1])
        record = next(records, None)
        return record if record is not None and record.position.offset == offset else None

    def release(self, positions: Iterable[Position]) -> None:
        """Nothing: records go by the topic's retention."""

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has; what is configured while the cluster has not been reached."""
        return self._link.partitions(topic)

    async def backlog(self, group: str, topic: str) -> int:
        """Records above the group's commit in the partitions that this process owns: processes add up to all."""
        reader = self._reader(group, topic)
        return 0 if reader is None else reader.behind

    def begin_shutdown(self) -> None:
        """See `port.Log.begin_shutdown`."""
        self._link.begin_shutdown()

    async def close(self) -> None:
        """Flush and let go, within some seconds. Readers end."""
        if not self._open:
            return
        self._open = False
        async with asyncio.TaskGroup() as group:
            for reader in tuple(self._readers):
                group.create_task(reader.close())
        for task in tuple(self._looking):
            task.cancel()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._connecting.end())
            group.create_task(self._intake.close(CLOSE))
            group.create_task(self._writer.close(CLOSE))
            group.create_task(self._lookup.close(CLOSE))

    # --- writing -------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if not self._open:
            raise LogUnavailable("the log is closed")

    def _known(self, topic: str, partition: int) -> None:
        if not 0 <= partition < self._link.partitions(topic):
            raise ValueError(f"topic `{topic}` has no partition {partition}")

    def _reader(self, group: str, topic: str) -> KafkaReader | None:
        return next((r for r in self._readers if (r.group, r.topic) == (group, topic)), None)

    def _is_anothers(self, new: New) -> bool:
        """State of sessions whose partition has gone: another owner's is newer."""
        guard = GUARDED.get(new.topic)
        if guard is None or callable(new.value) or new.partition is None:
            return False
        reader = self._reader(*guard)
        return reader is not None and new.partition not in reader.owned

    async def _fence(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        state = state_behind(group, topic)
        if state is not None:
            await self._writer.write([fence(state, each, self._link.owner) for each in partitions])

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
        """For a group without members; the broker refuses it while there are any."""
        offsets = {
            TopicPartition(self._link.name(each.topic), each.partition): OffsetAndMetadata(
                each.offset, encode_metadata(each.metadata)
            )
            for each in commits
        }
        self._link.reached()
        consumer = AIOKafkaConsumer(
            **self._link.client, group_id=self._link.group(group), enable_auto_commit=False
        )
        try:
            await self._link.within(_commit_by(consumer, offsets))
        except TimeoutError as error:
            raise LogUnavailable(f"Kafka did not store the commit of `{group}` in time") from error
        except KafkaError as error:
            raise LogUnavailable(f"Kafka: {error!r}") from error
        finally:
            await ended(asyncio.create_task(consumer.stop()), CLOSE)

    # --- reading back --------------------------------------------------------------------------------------------

    def _looked(self, task: asyncio.Task[int]) -> None:
        self._looking.discard(task)
        if not task.cancelled():
            task.exception()

    async def _end(self, topic: str, partition: int) -> int:
        return (await self._lookup.ends(topic, [partition]))[partition]

    async def _replayed(
        self, topic: str, partition: int, offset: int, end: asyncio.Task[int]
    ) -> AsyncIterator[Record]:
        await asyncio.wait([end])
        if end.cancelled():
            raise LogUnavailable("the log is closed")
        last = end.result()
        counting = Fenced(topic)
        while offset < last:
            self._check_open()
            try:
                raws, following = await self._lookup.stretch(topic, partition, offset)
            except OffsetOutOfRangeError:
                oldest = (await self._lookup.beginnings(topic, [partition]))[partition]
                raws, following = [], max(oldest, offset + 1)
            for record in counting.through(raws):
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

"""How far a group is behind on Kafka: its commits, the ends of the partitions, the time of one record of each.

Of a group that this process is a member of: its own partitions. Of one without a member anywhere: all of them, as the
broker holds its commits; so a role that no process runs shows as lag. A group with members elsewhere is theirs to
measure.

A record is fetched only where something waits that was there at the measurement before; what came since then is as old
as that measurement, at most, if that was just now.
"""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, OffsetOutOfRangeError, for_code
from aiokafka.structs import TopicPartition

from collector.base.errors import LogUnavailable
from collector.log.kafka.client import ended
from collector.log.kafka.cluster import Cluster
from collector.log.kafka.partition_reader import PartitionReader
from collector.log.kafka.reader import KafkaReader
from collector.log.kafka.rights import READ, failure
from collector.log.port import Lag

RECENT = 10.0
"""Seconds after which a measurement says nothing of what came since: the partition was another's, or Kafka away."""
_WITHOUT_MEMBERS = {"Empty", "Dead"}  # states of a group; a group that never was is `Dead`


class _End(NamedTuple):
    """The end of a partition, and when it was asked for."""

    offset: int
    at: float


class GroupLags:
    """Owned by the log; one measurement at a time."""

    def __init__(self, cluster: Cluster, partition_reader: PartitionReader) -> None:
        self._cluster = cluster
        self._partition_reader = partition_reader
        self._ends: dict[tuple[str, str, int], _End] = {}
        """By group, topic and partition: at the measurement before."""
        self._times: dict[tuple[str, int], tuple[int, float]] = {}
        """By topic and partition: the record that was fetched last, its offset and time."""
        self._admin: AIOKafkaAdminClient | None = None
        """Made at the first question about a group that this process is not a member of."""

    async def of_member(self, reader: KafkaReader, *, unread: bool) -> Lag:
        """The lag in the partitions of this reader.

        Raises LogUnavailable: it has not joined its group, or no answer came in time.
        """
        return await self._lag(reader.group, reader.topic, reader.places(unread=unread))

    async def without_members(self, group: str, topic: str) -> Lag | None:
        """The lag in all partitions; None: the group has members. Raises LogUnavailable: no answer in time."""
        self._cluster.reached()
        late = f"Kafka did not give the position of `{group}` in time"
        try:
            places = await self._cluster.within(self._stored(group, topic), late)
        except LogUnavailable:
            await self.close(1.0)
            raise
        except (KafkaError, OSError) as error:
            await self.close(1.0)
            raise LogUnavailable(failure(error, READ)) from error
        return None if places is None else await self._lag(group, topic, places)

    async def close(self, seconds: float) -> None:
        """Close the client that asks about groups, within that time; another question makes another one."""
        admin, self._admin = self._admin, None
        if admin is not None:
            await ended(asyncio.create_task(admin.close()), seconds)

    async def _stored(self, group: str, topic: str) -> dict[int, int] | None:
        """By partition, the commit of a group without members, 0 where it has none."""
        name = self._cluster.group(group)
        admin = self._admin = self._admin or AIOKafkaAdminClient(**self._cluster.client)
        await admin.start()  # does nothing the second time
        (answer,) = await admin.describe_consumer_groups([name])
        code, _, state, *_ = answer.groups[0]
        if code:
            raise for_code(code)()
        if state not in _WITHOUT_MEMBERS:
            return None
        commits = await admin.list_consumer_group_offsets(name)
        return {
            partition: max(0, commits[place].offset) if place in commits else 0
            for partition in range(self._cluster.partitions(topic))
            for place in (TopicPartition(self._cluster.name(topic), partition),)
        }

    async def _lag(self, group: str, topic: str, places: Mapping[int, int]) -> Lag:
        if not places:
            return Lag()
        now = self._cluster.clock()
        ends = await self._partition_reader.ends(topic, places)
        records, times = 0, list[float]()
        for partition, low in places.items():
            key = group, topic, partition
            before = self._ends.get(key)
            self._ends[key] = _End(ends[partition], now)
            if low >= ends[partition]:
                continue
            if before is not None and low >= before.offset and now - before.at < RECENT:
                offset, time = low, before.at
            else:
                offset, time = await self._oldest(topic, partition, low)
            records += max(0, ends[partition] - offset)
            times.append(time)
        return Lag(records, min(times, default=None))

    async def _oldest(self, topic: str, partition: int, low: int) -> tuple[int, float]:
        """Offset and time of the first record from `low` on."""
        known = self._times.get((topic, partition))
        if known is not None and known[0] == low:
            return known
        try:
            raws, _ = await self._partition_reader.fetch_range(topic, partition, low, size=1)
        except OffsetOutOfRangeError:  # it has expired
            low = (await self._partition_reader.beginnings(topic, [partition]))[partition]
            raws, _ = await self._partition_reader.fetch_range(topic, partition, low, size=1)
        if not raws:
            return low, self._cluster.clock()
        found = raws[0].offset, raws[0].timestamp / 1000
        self._times[topic, partition] = found
        return found

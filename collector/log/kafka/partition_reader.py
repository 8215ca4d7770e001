"""Reads without a group: one record, a range of a partition, its first and last offset."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.errors import (
    KafkaError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import ConsumerRecord, TopicPartition

from collector.base.errors import LogUnavailable
from collector.log.kafka.client import ended, is_lost, network_client
from collector.log.kafka.cluster import Cluster
from collector.log.kafka.rights import READ, failure
from collector.log.port import KAFKA_TOPICS

FETCH_BYTES = 1 << 20  # bytes of one fetch; a larger batch comes whole
_T = TypeVar("_T")


class PartitionReader:
    """Has a client of its own, made at the first call."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = asyncio.Lock()
        self._consumer: AIOKafkaConsumer | None = None

    async def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        topic_partitions = [TopicPartition(self._cluster.name(topic), each) for each in partitions]
        offsets = await self._ask(lambda consumer: consumer.end_offsets(topic_partitions))
        return {each.partition: offset for each, offset in offsets.items()}

    async def beginnings(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        topic_partitions = [TopicPartition(self._cluster.name(topic), each) for each in partitions]
        offsets = await self._ask(lambda consumer: consumer.beginning_offsets(topic_partitions))
        return {each.partition: offset for each, offset in offsets.items()}

    async def fetch_range(
        self, topic: str, partition: int, offset: int, *, size: int = FETCH_BYTES
    ) -> tuple[list[ConsumerRecord], int]:
        """Records from `offset` on, and the offset to go on from; no records: the partition ends there.

        Raises LogUnavailable: no answer in time. Raises OffsetOutOfRangeError: the offset has expired, or is above the
        end.
        """
        place = TopicPartition(self._cluster.name(topic), partition)
        return await self._ask(lambda consumer: _fetch(consumer, place, offset, size))

    async def close(self, seconds: float) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await ended(asyncio.create_task(consumer.stop()), seconds)

    async def _ask(self, question: Callable[[AIOKafkaConsumer], Awaitable[_T]]) -> _T:
        self._cluster.reached()
        try:
            return await self._cluster.within(
                self._answer(question), "Kafka did not answer in time"
            )
        except OffsetOutOfRangeError:
            raise
        except LogUnavailable:
            if self._consumer is not None and is_lost(network_client(self._consumer)):
                await self.close(1.0)  # the next question makes another
            raise
        except (KafkaError, OSError) as error:
            raise LogUnavailable(failure(error, READ)) from error

    async def _answer(self, question: Callable[[AIOKafkaConsumer], Awaitable[_T]]) -> _T:
        """Ask until the answer is not "try again"; the caller bounds the time."""
        while True:
            try:
                return await question(await self._started())
            except (NotLeaderForPartitionError, UnknownTopicOrPartitionError, LogUnavailable):
                await asyncio.sleep(0.1)  # a topic just created, or a leader that moves

    async def _started(self) -> AIOKafkaConsumer:
        async with self._lock:
            if self._consumer is None:
                consumer = AIOKafkaConsumer(**self._cluster.client, enable_auto_commit=False)
                try:
                    await consumer.start()
                    await network_client(consumer).set_topics(
                        [self._cluster.name(each) for each in KAFKA_TOPICS]
                    )
                except BaseException:
                    await ended(asyncio.create_task(consumer.stop()), 1.0)
                    raise
                self._consumer = consumer
        return self._consumer


async def _fetch(
    consumer: AIOKafkaConsumer, source: TopicPartition, offset: int, size: int
) -> tuple[list[ConsumerRecord], int]:
    # A request of our own: a consumer's position would read far ahead for a single record.
    client = network_client(consumer)
    leader = client.cluster.leader_for_partition(source)
    if leader is None or leader < 0:
        await client.force_metadata_update()
        raise LogUnavailable(f"{source.topic} partition {source.partition} has no leader now")
    request = FetchRequest(0, 0, size, 0, [(source.topic, [(source.partition, offset, size)])])
    answer = await client.send(leader, request)
    ((_, ((_, code, _highwater, *rest),)),) = answer.topics
    if code:
        client.force_metadata_update()
        raise for_code(code)()
    records = PartitionRecords(
        source, MemoryRecords(rest[-1] or b""), None, offset, None, None, True, 0
    )
    return list(records), records.next_fetch_offset

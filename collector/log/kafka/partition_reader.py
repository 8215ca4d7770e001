"""Reading beside the groups: one record, a stretch of a partition, the ends of one. No group, no position kept."""

from __future__ import annotations

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

from collector.errors import LogUnavailable
from collector.kafka.client import ended
from collector.log.kafka.cluster import Link
from collector.log.port import TOPICS

STRETCH = 1 << 20
"""Bytes of one fetch; a batch that is larger comes whole."""
_T = TypeVar("_T")


class Lookup:
    """A client of its own, made when first needed."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = asyncio.Lock()
        self._consumer: AIOKafkaConsumer | None = None

    async def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """The offset after the newest record, by partition."""
        asked = [TopicPartition(self._link.name(topic), each) for each in partitions]
        found = await self._ask(lambda consumer: consumer.end_offsets(asked))
        return {each.partition: offset for each, offset in found.items()}

    async def beginnings(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """The offset of the oldest record, by partition."""
        asked = [TopicPartition(self._link.name(topic), each) for each in partitions]
        found = await self._ask(lambda consumer: consumer.beginning_offsets(asked))
        return {each.partition: offset for each, offset in found.items()}

    async def stretch(
        self, topic: str, partition: int, offset: int, *, size: int = STRETCH
    ) -> tuple[list[ConsumerRecord], int]:
        """Records from `offset` on, and where to go on; none when there are none, or the offset has expired.

        Raises:
            LogUnavailable: no answer in time.
            OffsetOutOfRangeError: there is nothing at the offset, nor will there be.
        """
        place = TopicPartition(self._link.name(topic), partition)
        return await self._ask(lambda consumer: _fetch(consumer, place, offset, size))

    async def close(self, seconds: float) -> None:
        """Let go within that time."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await ended(asyncio.create_task(consumer.stop()), seconds)

    async def _ask(self, question: Callable[[AIOKafkaConsumer], Awaitable[_T]]) -> _T:
        self._link.reached()
        try:
            return await self._link.within(self._answer(question))
        except OffsetOutOfRangeError:
            raise
        except TimeoutError as error:
            raise LogUnavailable("Kafka did not answer in time") from error
        except (KafkaError, OSError) as error:
            raise LogUnavailable(f"Kafka: {error!r}") from error

    async def _answer(self, question: Callable[[AIOKafkaConsumer], Awaitable[_T]]) -> _T:
        """Ask until something else than "not now" comes back; the caller bounds it."""
        while True:
            try:
                return await question(await self._started())
            except (NotLeaderForPartitionError, UnknownTopicOrPartitionError, LogUnavailable):
                await asyncio.sleep(0.1)  # a topic just created, or a leader that moves

    async def _started(self) -> AIOKafkaConsumer:
        async with self._lock:
            if self._consumer is None:
                consumer = AIOKafkaConsumer(**self._link.client, enable_auto_commit=False)
                try:
                    await consumer.start()
                    await consumer._client.set_topics([self._link.name(each) for each in TOPICS])  # noqa: SLF001
                except BaseException:
                    await ended(asyncio.create_task(consumer.stop()), 1.0)
                    raise
                self._consumer = consumer
        return self._consumer


async def _fetch(
    consumer: AIOKafkaConsumer, place: TopicPartition, offset: int, size: int
) -> tuple[list[ConsumerRecord], int]:
    # A request of our own: a consumer's position would read far ahead for a single record.
    client = consumer._client  # noqa: SLF001
    leader = client.cluster.leader_for_partition(place)
    if leader is None or leader < 0:
        await client.force_metadata_update()
        raise LogUnavailable(f"{place.topic} partition {place.partition} has no leader now")
    request = FetchRequest(0, 0, size, 0, [(place.topic, [(place.partition, offset, size)])])
    answer = await client.send(leader, request)
    ((_, ((_, code, _highwater, *rest),)),) = answer.topics
    if code:
        client.force_metadata_update()
        raise for_code(code)()
    records = PartitionRecords(
        place, MemoryRecords(rest[-1] or b""), None, offset, None, None, True, 0
    )
    found = list(records)
    return found, records.next_fetch_offset

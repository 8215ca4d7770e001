"""What we do on Kafka without a broker: lag, rights, lost connections and the partition of a key."""

import asyncio
import struct
from collections.abc import Callable, Iterable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvloop
from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.structs import ConsumerRecord
from hypothesis import given
from hypothesis import strategies as st

from collector.base.telemetry import Telemetry
from collector.config.tree import KafkaLogConfig
from collector.log.families import LogFamilies
from collector.log.kafka.client import client_settings, heed_lost_connections
from collector.log.kafka.cluster import Cluster
from collector.log.kafka.lag import GroupLags
from collector.log.kafka.partition_reader import PartitionReader
from collector.log.kafka.reader import KafkaReader
from collector.log.kafka.rights import READ, Right, missing_rights
from collector.log.port import TRACES, Lag, murmur2, partition_of
from tests.support.clocks import SetClock


class TellingPartitions(PartitionReader):
    """One partition; its record at offset n was appended at second n."""

    end = 0
    fetched = 0

    async def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return dict.fromkeys(partitions, self.end)

    async def fetch_range(
        self, topic: str, partition: int, offset: int, *, size: int = 1
    ) -> tuple[list[ConsumerRecord], int]:
        self.fetched += 1
        record = ConsumerRecord(
            topic=topic,
            partition=partition,
            offset=offset,
            timestamp=offset * 1000,
            timestamp_type=1,
            key=None,
            value=b"",
            checksum=None,
            serialized_key_size=0,
            serialized_value_size=0,
            headers=(),
        )
        return [record], offset + 1


class StandingReader(KafkaReader):
    """Owns the partition."""

    low = 0

    def places(self, *, unread: bool) -> dict[int, int]:
        return {0: self.low}


class Stand:
    def __init__(self) -> None:
        self.clock = SetClock(1000.0)
        settings = KafkaLogConfig(bootstrap_servers="k:9092")
        cluster = Cluster(
            settings=settings,
            client=client_settings("k:9092", settings.security),
            clock=self.clock,
            families=LogFamilies(Telemetry()),
            deadline=1.0,
            owner=b"",
        )
        self.partitions = TellingPartitions(cluster)
        self.reader = StandingReader(
            cluster, self.partitions, "scoring", TRACES, fence=_no_fence, closed=lambda _: None
        )
        self._lags = GroupLags(cluster, self.partitions)

    async def lag(self, *, low: int, end: int, after: float = 2.0) -> Lag:
        self.clock.now += after
        self.reader.low, self.partitions.end = low, end
        return await self._lags.of_member(self.reader, unread=False)


async def _no_fence(group: str, topic: str, partitions: object) -> None:
    del group, topic, partitions


async def test_a_group_that_keeps_up_costs_no_fetch() -> None:
    stand = Stand()
    await stand.lag(low=900, end=900)

    lags = [await stand.lag(low=900 + 10 * n, end=905 + 10 * n) for n in range(5)]

    assert [each.records for each in lags] == [5] * 5
    assert lags[-1].oldest == stand.clock.now - 2.0  # it came since the measurement before
    assert stand.partitions.fetched == 0


async def test_a_record_that_stays_is_fetched_once() -> None:
    stand = Stand()
    await stand.lag(low=900, end=900)

    lags = [await stand.lag(low=900, end=910 + n) for n in range(5)]

    assert lags[1:] == [Lag(11 + n, 900.0) for n in range(4)]
    assert stand.partitions.fetched == 1


async def test_a_measurement_of_long_ago_says_nothing_about_what_came_since() -> None:
    """The partition was another process's for an hour: nothing is an hour old for it."""
    stand = Stand()
    await stand.lag(low=900, end=900)

    assert await stand.lag(low=4000, end=4001, after=3600.0) == Lag(1, 4000.0)


NO_BITS = -(2**31)


class _Client:
    """Answers about a group, one after the other: its error code, and what is allowed."""

    def __init__(self, *answers: tuple[int, int]) -> None:
        self._answers = [*answers]

    def get_random_node(self) -> int:
        return 0

    async def coordinator_lookup(self, _kind: int, _group: str) -> int:
        return 0

    async def send(self, _node: int, request: object) -> object:
        if type(request).__name__ == "_Operations":
            return SimpleNamespace(topics=[])
        code, allowed = self._answers.pop(0)
        return SimpleNamespace(groups=[(code, "g", "", "", "", [], allowed)])


async def missing(*answers: tuple[int, int]) -> list[Right]:
    admin = cast(Any, SimpleNamespace(_client=_Client(*answers)))
    return await missing_rights(admin, topics=(), operations=(), groups=("g",))


async def test_a_coordinator_that_is_not_ready_is_asked_again() -> None:
    """Its answer says nothing of rights, and looked as if all were there."""
    assert await missing((14, NO_BITS), (16, NO_BITS), (0, 0)) == [Right(READ, "group", "g")]
    assert await missing((15, NO_BITS), (0, 1 << 3)) == []


VERSIONS = struct.pack(">hihhhhhh", 0, 2, 3, 0, 1, 18, 0, 0)
"""No error; metadata 0 to 1, versions 0."""


async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says which requests it knows, then nothing."""
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    _, _, correlation = struct.unpack_from(">hhi", await reader.readexactly(size))
    writer.write(struct.pack(">ii", 4 + len(VERSIONS), correlation) + VERSIONS)
    await reader.read()
    writer.close()


async def lost() -> AIOKafkaConnection:
    """A connection that has just gone, before its reader learned of it."""
    server = await asyncio.start_server(broker, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    connection = await create_conn(host, port)
    writer = connection._writer
    assert writer is not None
    writer.transport.abort()
    while "closed=True" not in repr(writer.transport):  # noqa: ASYNC110 - one turn of the loop
        await asyncio.sleep(0)
    server.close()
    return connection


def test_a_write_to_it_is_an_error_that_aiokafka_expects() -> None:
    heed_lost_connections()
    heed_lost_connections()

    async def written() -> None:
        connection = await lost()
        with pytest.raises(KafkaConnectionError):
            await connection.send(MetadataRequest([]))
        assert not connection.connected()

    uvloop.run(written())


kafkas: Callable[[bytes], int] = import_module("aiokafka.partitioner").murmur2


@given(st.binary(max_size=64), st.integers(1, 50))
def test_partitions_agree_with_the_client_that_writes_to_kafka(key: bytes, count: int) -> None:
    assert murmur2(key) == kafkas(key) % (1 << 32)
    assert partition_of(key, count) == (kafkas(key) & 0x7FFFFFFF) % count

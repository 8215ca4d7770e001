"""When the lag on Kafka fetches a record for its time, and when it knows enough."""

from collections.abc import Iterable

from aiokafka.structs import ConsumerRecord

from collector.base.telemetry import Telemetry
from collector.config.tree import KafkaLogConfig
from collector.log.families import LogFamilies
from collector.log.kafka.client import client_settings
from collector.log.kafka.cluster import Cluster
from collector.log.kafka.lag import GroupLags
from collector.log.kafka.partition_reader import PartitionReader
from collector.log.kafka.reader import KafkaReader
from collector.log.port import TRACES, Lag
from tests.support.ticking import SetClock


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

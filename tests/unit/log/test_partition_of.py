"""Partitions agree with Kafka's default partitioner."""

from collections.abc import Callable
from importlib import import_module

from hypothesis import given
from hypothesis import strategies as st

from collector.log.port import murmur2, partition_of

kafkas: Callable[[bytes], int] = import_module("aiokafka.partitioner").murmur2


@given(st.binary(max_size=64), st.integers(1, 50))
def test_partitions_agree_with_the_client_that_writes_to_kafka(key: bytes, count: int) -> None:
    assert murmur2(key) == kafkas(key) % (1 << 32)
    assert partition_of(key, count) == (kafkas(key) & 0x7FFFFFFF) % count

"""Partitions agree with Kafka's default partitioner."""

from collections.abc import Callable
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.log.port import murmur2, partition_of

kafkas: Callable[[bytes], int] = import_module("aiokafka.partitioner").murmur2


@pytest.mark.parametrize(
    ("key", "digest"),
    [  # org.apache.kafka.common.utils.UtilsTest.testMurmur2
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_digest_is_kafkas(key: bytes, digest: int) -> None:
    assert murmur2(key) == digest % (1 << 32)


@given(st.binary(max_size=64), st.integers(1, 50))
def test_partitions_agree_with_the_client_that_writes_to_kafka(key: bytes, count: int) -> None:
    assert murmur2(key) == kafkas(key) % (1 << 32)
    assert partition_of(key, count) == (kafkas(key) & 0x7FFFFFFF) % count

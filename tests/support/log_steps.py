"""What tests of a log do again and again: write, poll until something has come, read all."""

import asyncio
from collections.abc import Sequence

from collector.base.errors import LogFull
from collector.log.port import (
    SIGNALS,
    SPANS,
    TRACES,
    Assigned,
    Batch,
    Commit,
    Log,
    New,
    Position,
    Reader,
    Record,
)

GROUPS = {
    SPANS: frozenset({"assembly"}),
    TRACES: frozenset({"scoring", "api"}),
    SIGNALS: frozenset({"sink.jsonl", "sink.prometheus", "api"}),
}
PARTITIONS = 3
PATIENCE = 20.0
"""Seconds that a log may take to deliver what was written."""


def new(topic: str, value: bytes, key: bytes = b"key", partition: int | None = 0) -> New:
    return New(topic=topic, key=key, value=value, partition=partition)


def values(records: Sequence[Record]) -> list[bytes]:
    return [record.value for record in records]


def commit_of(group: str, topic: str, offset: int, metadata: int | None = None) -> Commit:
    """Of the first partition."""
    return Commit(group=group, topic=topic, partition=0, offset=offset, metadata=metadata)


async def commit_to(
    log: Log, group: str, topic: str, offset: int, metadata: int | None = None
) -> None:
    await log.write([], [commit_of(group, topic, offset, metadata)])


async def reading(log: Log, group: str, topic: str) -> Reader:
    """A reader that owns something."""
    reader = log.read(group, topic)
    await assigned(reader)
    return reader


async def assigned(reader: Reader) -> dict[int, Assigned]:
    """Poll until the reader owns something."""
    async with asyncio.timeout(PATIENCE):
        while True:
            batch = await reader.poll(timeout=0.2)
            if batch.assigned:
                assert not batch.records
                return {each.partition: each for each in batch.assigned}


async def take(reader: Reader, count: int, *, max_records: int = 256) -> list[Record]:
    """Poll until `count` records have come."""
    records: list[Record] = []
    async with asyncio.timeout(PATIENCE):
        while len(records) < count:
            batch = await reader.poll(max_records=max_records, timeout=0.2)
            assert len(batch.records) <= max_records
            records.extend(batch.records)
    return records


async def at_end(reader: Reader, partition: int = 0) -> Batch:
    """Poll until the reader stands at the partition's end."""
    async with asyncio.timeout(PATIENCE):
        while True:
            batch = await reader.poll(timeout=0.05)
            if partition in batch.ends:
                return batch


async def all_of(log: Log, topic: str, partition: int = 0, since: int | None = None) -> list[bytes]:
    return [record.value async for record in log.replay(topic, partition, since)]


async def fill(log: Log, topic: str, size: int) -> list[Position]:
    """Write until the topic is full; keys are 0, 1, 2 ..."""
    written: list[Position] = []
    for n in range(10_000):
        try:
            written += await log.write([new(topic, b"s" * size, b"%d" % n)])
        except LogFull:
            return written
    raise AssertionError(f"`{topic}` never fills up")

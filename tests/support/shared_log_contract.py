"""What a log that several processes share must do beside `LogContract`: Kafka."""

from __future__ import annotations

import asyncio

from collector.log.port import (
    SPANS,
    Batch,
    Commit,
    Log,
)
from tests.support.log_contract import (
    PARTITIONS,
    PATIENCE,
    LogContract,
    assigned,
    new,
    take,
    values,
)


class SharedLogContract(LogContract):
    """Logs that several processes share (Kafka). The fixture `other` is another process's log on the same records."""

    async def test_a_second_member_takes_partitions_over(self, log: Log, other: Log) -> None:
        first, second = log.read("assembly", SPANS), other.read("assembly", SPANS)
        mine = set(await assigned(first))
        assert mine == set(range(PARTITIONS))

        theirs: set[int] = set()
        async with asyncio.timeout(PATIENCE * 3):
            while not theirs or mine & theirs or mine | theirs != set(range(PARTITIONS)):
                mine = owned_after(mine, await first.poll(timeout=0.2))
                theirs = owned_after(theirs, await second.poll(timeout=0.2))

        await second.close()
        async with asyncio.timeout(PATIENCE * 3):
            while mine != set(range(PARTITIONS)):
                mine = owned_after(mine, await first.poll(timeout=0.2))

    async def test_a_partition_that_moves_goes_on_from_its_commit(
        self, log: Log, other: Log
    ) -> None:
        positions = await log.write([new(SPANS, b"%d" % n) for n in range(4)])
        first = log.read("assembly", SPANS)
        await assigned(first)
        await take(first, 4)
        offset = positions[2].offset
        await log.write(
            [], [Commit(group="assembly", topic=SPANS, partition=0, offset=offset, metadata=5)]
        )
        await first.close()

        second = other.read("assembly", SPANS)
        owned = await assigned(second)

        assert (owned[0].offset, owned[0].metadata) == (offset, 5)
        assert values(await take(second, 2)) == [b"2", b"3"]


def owned_after(owned: set[int], batch: Batch) -> set[int]:
    """What a member owns after this poll."""
    return owned - set(batch.revoked) | {each.partition for each in batch.assigned}

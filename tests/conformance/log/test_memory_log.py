"""The memory log keeps the contract."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from collector.base.telemetry import Telemetry
from collector.log.embedded.polling import FOREVER, Slice
from collector.log.memory import MemoryLog
from collector.log.port import SIGNALS, SPANS, TRACES, Commit, Log
from tests.support.deletes_spans_contract import DeletesSpans
from tests.support.log_steps import GROUPS, PARTITIONS, all_of, new
from tests.support.owned_log_contract import OwnedLogContract
from tests.support.ticking import SetClock


class TestMemoryLog(DeletesSpans, OwnedLogContract):
    @pytest.fixture
    async def log(self, clock: SetClock, telemetry: Telemetry) -> AsyncIterator[Log]:
        log = MemoryLog(clock=clock, telemetry=telemetry, partitions=PARTITIONS, groups=GROUPS)
        yield log
        await log.close()

    @pytest.fixture
    async def small(self, clock: SetClock, telemetry: Telemetry) -> AsyncIterator[Log]:
        log = MemoryLog(clock=clock, telemetry=telemetry, max_size=8 << 20, groups=GROUPS)
        yield log
        await log.close()

    @pytest.fixture
    async def patient(self, clock: SetClock, telemetry: Telemetry) -> AsyncIterator[Log]:
        log = MemoryLog(
            clock=clock,
            telemetry=telemetry,
            max_size=8 << 20,
            groups=GROUPS,
            waits_for={TRACES: frozenset({"scoring"})},
        )
        yield log
        await log.close()

    async def test_without_groups_those_hold_that_were_seen(self, clock: SetClock) -> None:
        log = MemoryLog(clock=clock)
        log.read("assembly", SPANS)
        (position,) = await log.write([new(SPANS, b"span")])
        before = await all_of(log, SPANS)

        commit = Commit(group="assembly", topic=SPANS, partition=0, offset=position.offset + 1)
        await log.write([], [commit])

        assert before == [b"span"]
        assert await all_of(log, SPANS) == []
        await log.close()


async def test_a_reader_without_waiters_gathers(clock: SetClock, telemetry: Telemetry) -> None:
    """The first record comes at once, those after it together once `linger` has passed."""
    log = MemoryLog(clock=clock, telemetry=telemetry, groups=GROUPS)
    reader = log.read("sink.jsonl", SIGNALS, linger=0.3)
    await reader.poll(timeout=1)
    await log.write([new(SIGNALS, b"1")])
    first = await reader.poll(timeout=1)
    second = asyncio.create_task(reader.poll(timeout=1))
    for n in (2, 3):
        await asyncio.sleep(0)
        await log.write([new(SIGNALS, b"%d" % n)])

    assert [each.value for each in first.records] == [b"1"]
    assert [each.value for each in (await second).records] == [b"2", b"3"]
    await log.close()


class _CountingLog(MemoryLog):
    looks = 0

    def slice(
        self, topic: str, partition: int, since: int, *, end: int = FOREVER, most: int = FOREVER
    ) -> Slice:
        self.looks += 1
        return super().slice(topic, partition, since, end=end, most=most)


async def test_a_reader_at_the_end_looks_once_in_a_poll(clock: SetClock) -> None:
    """What is idle for hours wakes up for its ends alone."""
    log = _CountingLog(clock=clock, groups=GROUPS)
    reader = log.read("sink.jsonl", SIGNALS)
    await reader.poll()
    await reader.poll(timeout=0.01)
    before = log.looks
    batch = await reader.poll(timeout=0.01)

    assert batch.ends
    assert log.looks == before + 1
    await log.write([new(SIGNALS, b"1")])
    assert [each.value for each in (await reader.poll(timeout=0)).records] == [b"1"]
    await log.close()

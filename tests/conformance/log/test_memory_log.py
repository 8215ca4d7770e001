"""The memory log keeps the contract."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from collector.base.errors import LogFull
from collector.base.telemetry import Telemetry
from collector.log.embedded.polling import FOREVER, Slice
from collector.log.memory import MemoryLog
from collector.log.port import SIGNALS, SPANS, TRACES, Log
from tests.support.clocks import SetClock
from tests.support.log_steps import GROUPS, all_of, commit_to, fill, new
from tests.support.owned_log_contract import OwnedLogContract


class TestMemoryLog(OwnedLogContract):
    async def opened(
        self, folder: Path, clock: SetClock, telemetry: Telemetry, **settings: Any
    ) -> Log:
        return MemoryLog(clock=clock, telemetry=telemetry, groups=GROUPS, **settings)

    async def test_full_spans_are_refused_until_a_commit_or_a_release_frees_them(
        self, small: Log
    ) -> None:
        """A log without ranges: no trace record names spans, so they go when nobody waits for them."""
        written = await fill(small, SPANS, 150_000)
        with pytest.raises(LogFull):
            await small.write([new(TRACES, b"with it"), new(SPANS, b"s" * 150_000)])
        assert await all_of(small, TRACES) == []
        assert len(await all_of(small, SPANS)) == len(written)

        await commit_to(small, "a group that was removed", SPANS, 0)
        await commit_to(small, "assembly", SPANS, written[2].offset)
        small.release(written[4:])
        await small.write([new(SPANS, b"s" * 150_000)])

        assert len(await all_of(small, SPANS)) == 3
        assert await small.get(written[0]) is None

    async def test_without_groups_those_hold_that_were_seen(self, clock: SetClock) -> None:
        log = MemoryLog(clock=clock)
        log.read("assembly", SPANS)
        (position,) = await log.write([new(SPANS, b"span")])
        before = await all_of(log, SPANS)

        await commit_to(log, "assembly", SPANS, position.offset + 1)

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

"""What a log that owns its records, its clock and its space must do beside `LogContract`: disk and memory.

What it holds after any writes, commits, releases and restarts is what a model holds: tests/property/log.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from collector.base.errors import RecordTooLarge
from collector.base.telemetry import Telemetry
from collector.log.port import (
    MAX_COUNT,
    SESSIONS,
    SIGNALS,
    SPANS,
    TRACES,
    Commit,
    Log,
    New,
    Position,
)
from tests.support.clocks import SetClock
from tests.support.log_contract import LogContract
from tests.support.log_steps import (
    GROUPS,
    PARTITIONS,
    all_of,
    assigned,
    at_end,
    commit_of,
    commit_to,
    fill,
    new,
    reading,
    take,
    values,
)


class OwnedLogContract(LogContract):
    """Logs that own their records, their clock and their space: disk and memory. A subclass says `opened`."""

    async def opened(
        self, folder: Path, clock: SetClock, telemetry: Telemetry, **settings: Any
    ) -> Log:
        raise NotImplementedError

    @pytest.fixture
    async def log(
        self, tmp_path: Path, clock: SetClock, telemetry: Telemetry
    ) -> AsyncIterator[Log]:
        log = await self.opened(
            tmp_path, clock, telemetry, max_size=256 << 20, partitions=PARTITIONS
        )
        yield log
        await log.close()

    @pytest.fixture
    async def small(
        self, tmp_path: Path, clock: SetClock, telemetry: Telemetry
    ) -> AsyncIterator[Log]:
        """Of one partition."""
        log = await self.opened(tmp_path / "small", clock, telemetry, max_size=8 << 20)
        yield log
        await log.close()

    async def test_a_call_that_fails_writes_nothing_and_its_neighbours_are_written(
        self, log: Log
    ) -> None:
        def fails(_: Position) -> bytes:
            raise KeyError("mine")

        bad = New(topic=TRACES, key=b"", value=fails, partition=0)
        commit = [commit_of("scoring", TRACES, 1)]
        calls = [[new(TRACES, b"%d" % n)] if n % 3 else [new(TRACES, b"x"), bad] for n in range(12)]
        async with asyncio.TaskGroup() as tasks:
            written = [
                tasks.create_task(is_written(log, each, commit if bad in each else ()))
                for each in calls
            ]

        assert [task.result() for task in written] == [bool(n % 3) for n in range(12)]
        assert await all_of(log, TRACES) == [b"%d" % n for n in range(12) if n % 3]
        assert (await assigned(log.read("scoring", TRACES)))[0].offset is None

    async def test_a_commit_never_goes_backwards(self, log: Log) -> None:
        for offset, metadata in ((5, 3), (6, None), (2, 9), (7, 1)):
            await commit_to(log, "assembly", SPANS, offset, metadata=metadata)

        owned = await assigned(log.read("assembly", SPANS))

        assert (owned[0].offset, owned[0].metadata) == (7, 3)

    async def test_log_time_never_goes_back(self, log: Log, clock: SetClock) -> None:
        for now in (1000.0, 1000.5, 900.0, 2000.25, 1.0):
            clock.now = now
            await log.write([new(TRACES, b"")])

        times = [record.time async for record in log.replay(TRACES, 0)]

        assert times == [1000.0, 1000.5, 1000.5, 2000.25, 2000.25]

    async def test_the_end_is_now_and_holds_when_the_clock_jumps_back(
        self, log: Log, clock: SetClock
    ) -> None:
        reader = await reading(log, "assembly", SPANS)

        clock.now = 5000.0
        end = (await at_end(reader)).ends[0]
        clock.now = 10.0
        await log.write([new(SPANS, b"after the tick")])
        (record,) = await take(reader, 1)

        assert end == 5000.0
        assert record.time >= end

    async def test_tombstones_belong_to_compacted_topics(self, log: Log) -> None:
        with pytest.raises(ValueError, match="tombstones"):
            await log.write([New(topic=TRACES, key=b"k", value=None, partition=0)])

    async def test_a_partition_that_does_not_exist_is_refused(self, log: Log) -> None:
        with pytest.raises(ValueError, match="partition 3"):
            await log.write([new(SPANS, b"", partition=PARTITIONS)])
        with pytest.raises(ValueError, match="partition 7"):
            await log.write([], [Commit(group="assembly", topic=SPANS, partition=7, offset=1)])

    async def test_a_group_has_one_reader(self, log: Log) -> None:
        reader = log.read("assembly", SPANS)
        with pytest.raises(ValueError, match="already"):
            log.read("assembly", SPANS)

        await reader.close()

        log.read("assembly", SPANS)

    async def test_a_poll_is_bounded_in_bytes(self, log: Log) -> None:
        await log.write([new(TRACES, b"x" * (3 << 20)) for _ in range(5)])
        reader = await reading(log, "scoring", TRACES)

        batch = await reader.poll(timeout=0)

        assert 3 <= len(batch.records) < 5
        assert len(await take(reader, 5 - len(batch.records))) == 5 - len(batch.records)

    async def test_the_oldest_traces_go_and_are_counted(
        self, small: Log, telemetry: Telemetry
    ) -> None:
        first = await small.write([new(TRACES, b"0" * 60_000) for _ in range(3)])
        done = first[1].offset
        await small.write([], [commit_of(g, TRACES, done) for g in GROUPS[TRACES]])

        for n in range(0, 200, 5):
            await small.write([new(TRACES, b"%06d" % m * 10_000) for m in range(n, n + 5)])
        count = 3 + 200
        kept = await all_of(small, TRACES)

        assert kept == [b"%06d" % n * 10_000 for n in range(200 - len(kept), 200)]
        assert dropped(telemetry, TRACES, "expired") == 1
        assert dropped(telemetry, TRACES, "unread") == count - len(kept) - 1

    @pytest.mark.parametrize("offsets", [1, 10])
    async def test_the_oldest_signals_are_lost_per_sink_and_counted_by_what_records_hold(
        self, small: Log, telemetry: Telemetry, offsets: int
    ) -> None:
        count = 600
        for n in range(0, count, 20):
            value = b"%04d" % n * 1_000 * offsets
            written = await small.write([_counted(value, offsets)] * (20 // offsets))
            if n == 80:
                await commit_to(small, "sink.jsonl", SIGNALS, written[-1].offset + 1)
        kept = sum([each.count async for each in small.replay(SIGNALS, 0)])

        assert 0 < kept < count - 100
        assert dropped(telemetry, SIGNALS, "share") == count - kept
        assert await lost_to(small, "sink.jsonl") == count - kept - 100
        assert await lost_to(small, "a new group") == 0
        lag = await small.lag("sink.jsonl", SIGNALS)
        assert lag is not None
        assert lag.records == await small.backlog("sink.jsonl", SIGNALS) == kept

    async def test_a_reader_learns_what_was_dropped_behind_it(self, small: Log) -> None:
        """What it holds in hand is not lost, though the log has dropped it meanwhile."""
        await small.write([new(SIGNALS, b"0" * 4_000) for _ in range(20)])
        reader = small.read("sink.jsonl", SIGNALS)
        await reader.poll()
        in_hand = await reader.poll(timeout=0)
        for _ in range(40):
            await small.write([new(SIGNALS, b"1" * 4_000) for _ in range(20)])
        held = await all_of(small, SIGNALS)
        batch = await reader.poll(timeout=0)

        assert (len(in_hand.records), dict(in_hand.lost)) == (20, {})
        assert batch.lost == {0: 800 - len(held)}

    async def test_a_record_of_several_offsets_stands_at_its_last(self, log: Log) -> None:
        assert log.counts_offsets
        reader = await reading(log, "sink.jsonl", SIGNALS)
        positions = await log.write([_counted(b"one"), _counted(b"three", 3), _counted(b"two", 2)])
        read = await take(reader, 1, max_records=1)
        await log.write([_counted(b"four", 4)])
        batch = await reader.poll(timeout=0)
        got = await log.get(positions[1])

        assert [each.offset for each in positions] == [0, 3, 5]
        records = [*read, *batch.records]
        assert values(records) == [b"one", b"three", b"two", b"four"]
        assert [(each.first, each.count) for each in records] == [(0, 1), (1, 3), (4, 2), (6, 4)]
        assert batch.lost == {}
        assert got is not None
        assert (got.value, got.count) == (b"three", 3)

    async def test_several_offsets_are_refused_where_keys_are_compacted(self, log: Log) -> None:
        for topic, count in ((SESSIONS, 2), (SIGNALS, 0), (SIGNALS, MAX_COUNT + 1)):
            with pytest.raises(ValueError, match="offsets"):
                await log.write([New(topic=topic, key=b"k", value=b"v", partition=0, count=count)])

    async def test_new_sessions_are_refused_when_full_but_known_ones_go_on(
        self, small: Log
    ) -> None:
        count = len(await fill(small, SESSIONS, 15_000))

        await small.write([new(SESSIONS, b"t" * 15_000, b"0")])
        for n in range(count // 2):
            await small.write([New(topic=SESSIONS, key=b"%d" % n, value=None, partition=0)])
        await small.write([new(SESSIONS, b"s" * 15_000, b"a new one")])

        assert len(await all_of(small, SESSIONS)) == count - count // 2 + 1

    async def test_a_call_larger_than_the_share_is_refused_for_good(self, small: Log) -> None:
        with pytest.raises(RecordTooLarge):
            await small.write([new(TRACES, b"x" * 900_000) for _ in range(8)])

    async def test_trimming_does_not_wait_for_a_slow_replay(self, small: Log) -> None:
        await small.write([new(TRACES, b"%d" % n * 20_000) for n in range(9)])
        replay = small.replay(TRACES, 0)
        first = await anext(replay)

        for _ in range(30):
            await small.write([new(TRACES, b"n" * 600_000)])
        rest = [record.value async for record in replay]

        assert first.value == b"0" * 20_000
        assert b"n" * 600_000 not in rest


def _counted(value: bytes, count: int = 1) -> New:
    return New(topic=SIGNALS, key=b"key", value=value, partition=0, count=count)


def dropped(telemetry: Telemetry, topic: str, reason: str) -> float:
    return sample(telemetry, "spanwise_log_dropped_records_total", topic=topic, reason=reason)


async def lost_to(log: Log, group: str) -> int:
    """Signals that the group's next reader finds missing."""
    reader = log.read(group, SIGNALS)
    await reader.poll()
    lost = (await reader.poll(timeout=0)).lost
    await reader.close()
    return sum(lost.values())


def sample(telemetry: Telemetry, name: str, **labels: str) -> float:
    return telemetry.registry.get_sample_value(name, labels) or 0.0


async def is_written(log: Log, call: Sequence[New], commits: Sequence[Commit]) -> bool:
    try:
        await log.write(call, commits)
    except KeyError:
        return False
    return True

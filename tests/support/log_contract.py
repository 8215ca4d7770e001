"""What every Log must do. Each adapter subclasses `LogContract` and says how it is opened.

What only a log that owns its records can promise (one transaction, its own clock, shares) stands in
`OwnedLogContract`, which Kafka's adapter does not subclass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from collector.errors import LogFull, LogUnavailable, RecordTooLarge
from collector.log.keys import partition_of
from collector.log.port import (
    CLOSINGS,
    SESSIONS,
    SIGNALS,
    SPANS,
    TRACES,
    WINDOWS,
    Assigned,
    Batch,
    Commit,
    Log,
    New,
    Position,
    Reader,
    Record,
)
from collector.telemetry import Telemetry
from tests.support.ticking import SetClock

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


class LogContract:
    """Every adapter. The fixture `log` has PARTITIONS partitions and GROUPS."""

    async def test_a_reader_gets_the_records_in_order_from_the_oldest(self, log: Log) -> None:
        reader = log.read("assembly", SPANS)

        await log.write([new(SPANS, b"%d" % n) for n in range(5)])
        await log.write([new(SPANS, b"%d" % n) for n in range(5, 9)])
        await assigned(reader)
        records = await take(reader, 9)

        assert values(records) == [b"%d" % n for n in range(9)]
        offsets = [record.position.offset for record in records]
        assert offsets == sorted(set(offsets))

    async def test_a_record_comes_back_as_it_was_written(self, log: Log) -> None:
        headers = (("ce_id", b"\x00\xff"), ("ce_id", b"again"), ("empty", b""))
        await log.write(
            [New(topic=SIGNALS, key=b"s-1", value=b"\x00value", partition=1, headers=headers)]
        )
        (record,) = [record async for record in log.replay(SIGNALS, 1)]

        assert record.key == b"s-1"
        assert record.value == b"\x00value"
        assert record.headers == headers
        assert record.position[:2] == (SIGNALS, 1)

    @pytest.mark.parametrize("size", [0, 1, 2000, 2022, 4000, 4060, 4080, 4096, 8160, 300_001])
    async def test_values_of_any_size_come_back_whole(self, log: Log, size: int) -> None:
        value = bytes(n % 251 for n in range(size))

        positions = await log.write([new(TRACES, value), new(TRACES, b"behind it")])

        assert [position[:2] for position in positions] == [(TRACES, 0)] * 2
        assert await all_of(log, TRACES) == [value, b"behind it"]
        got = await log.get(positions[0])
        assert got is not None
        assert got.value == value

    async def test_keys_and_headers_may_be_larger_than_a_page(self, log: Log) -> None:
        headers = (("wide", b"h" * 5000),)
        key = b"k" * 6000

        await log.write(
            [New(topic=TRACES, key=key, value=b"v" * 9000, partition=0, headers=headers)]
        )
        (record,) = [record async for record in log.replay(TRACES, 0)]

        assert (record.key, record.value, record.headers) == (key, b"v" * 9000, headers)

    async def test_the_key_chooses_the_partition(self, log: Log) -> None:
        keys = [b"%016d" % n for n in range(40)]

        positions = await log.write([new(SPANS, b"", key, None) for key in keys])

        assert [p.partition for p in positions] == [partition_of(key, PARTITIONS) for key in keys]
        assert {p.partition for p in positions} == set(range(PARTITIONS))

    async def test_a_reader_owns_its_partitions_and_keeps_their_order(self, log: Log) -> None:
        reader = log.read("assembly", SPANS)
        owned = await assigned(reader)

        await log.write([new(SPANS, b"%d" % n, partition=n % PARTITIONS) for n in range(30)])
        records = await take(reader, 30, max_records=4)

        assert set(owned) == set(range(PARTITIONS))
        for partition in range(PARTITIONS):
            mine = [r for r in records if r.position.partition == partition]
            assert values(mine) == [b"%d" % n for n in range(partition, 30, PARTITIONS)]

    async def test_what_is_assigned_comes_before_its_records(self, log: Log) -> None:
        await log.write([new(SPANS, b"waiting")])
        reader = log.read("assembly", SPANS)

        first = await assigned(reader)  # asserts that no records come with it
        records = await take(reader, 1)

        assert first[0].offset is None
        assert values(records) == [b"waiting"]

    async def test_a_new_reader_goes_on_from_the_commit(self, log: Log) -> None:
        positions = await log.write([new(SPANS, b"%d" % n) for n in range(6)])
        await log.write(
            [],
            [
                Commit(
                    group="assembly",
                    topic=SPANS,
                    partition=0,
                    offset=positions[4].offset,
                    marks=7,
                )
            ],
        )
        reader = log.read("assembly", SPANS)

        owned = await assigned(reader)
        records = await take(reader, 2)

        assert (owned[0].offset, owned[0].marks) == (positions[4].offset, 7)
        assert values(records) == [b"4", b"5"]

    async def test_where_a_commit_is_its_records_are(self, log: Log) -> None:
        """At least once: on Kafka the records come first, on disk both at once."""
        (span,) = await log.write([new(SPANS, b"span")])
        commit = Commit(group="assembly", topic=SPANS, partition=0, offset=span.offset + 1)

        await log.write([new(TRACES, b"trace"), new(CLOSINGS, b"mark")], [commit])
        reader = log.read("assembly", SPANS)

        assert (await assigned(reader))[0].offset == span.offset + 1
        assert await all_of(log, TRACES) == [b"trace"]
        assert await all_of(log, CLOSINGS) == [b"mark"]

    async def test_closing_a_reader_commits_nothing(self, log: Log) -> None:
        await log.write([new(SPANS, b"once more")])
        first = log.read("assembly", SPANS)
        await assigned(first)
        await take(first, 1)
        await first.close()

        second = log.read("assembly", SPANS)
        owned = await assigned(second)

        assert owned[0].offset is None
        assert values(await take(second, 1)) == [b"once more"]

    async def test_groups_do_not_disturb_each_other(self, log: Log) -> None:
        positions = await log.write([new(TRACES, b"a"), new(TRACES, b"b")])
        commit = Commit(group="scoring", topic=TRACES, partition=0, offset=positions[1].offset)
        await log.write([], [commit])

        scoring, api = log.read("scoring", TRACES), log.read("api", TRACES)
        await assigned(scoring)
        await assigned(api)

        assert values(await take(scoring, 1)) == [b"b"]
        assert values(await take(api, 2)) == [b"a", b"b"]

    async def test_a_value_may_name_the_positions_before_it(self, log: Log) -> None:
        def mark(written: Sequence[Position]) -> bytes:
            return repr([tuple(position) for position in written]).encode()

        positions = await log.write(
            [
                new(TRACES, b"trace"),
                New(topic=CLOSINGS, key=b"t", value=mark, partition=2),
                New(topic=CLOSINGS, key=b"t", value=mark, partition=2),
            ]
        )

        assert await all_of(log, CLOSINGS, 2) == [
            repr([tuple(position) for position in positions[:count]]).encode() for count in (1, 2)
        ]

    async def test_a_poll_waits_for_what_comes(self, log: Log) -> None:
        reader = log.read("assembly", SPANS)
        await assigned(reader)
        await at_end(reader)

        async with asyncio.TaskGroup() as tasks:
            poll = tasks.create_task(reader.poll(timeout=PATIENCE))
            await asyncio.sleep(0)
            await log.write([new(SPANS, b"news")])

        assert values(poll.result().records) == [b"news"]

    async def test_a_poll_ends_when_nothing_comes(self, log: Log) -> None:
        reader = log.read("assembly", SPANS)
        await assigned(reader)

        batch = await at_end(reader)

        assert not batch.records

    async def test_the_end_is_told_only_with_the_last_record(self, log: Log) -> None:
        await log.write([new(SPANS, b"%d" % n) for n in range(4)])
        reader = log.read("assembly", SPANS)
        await assigned(reader)

        first = await take(reader, 3, max_records=3)
        batch = await at_end(reader)

        assert batch.ends[0] >= first[-1].time or not batch.ends
        assert values(first) == [b"0", b"1", b"2"]

    async def test_compacted_topics_keep_the_newest_per_key(self, log: Log) -> None:
        async def put(key: bytes, value: bytes | None) -> None:
            await log.write([New(topic=SESSIONS, key=key, value=value, partition=0)])

        await put(b"a", b"a1")
        await put(b"b", b"b1")
        await put(b"a", b"a2")
        await put(b"c", b"c1")
        await put(b"b", None)

        state: dict[bytes, bytes] = {}
        async for record in log.replay(SESSIONS, 0):
            state[record.key] = record.value
            if not record.value:
                del state[record.key]
        assert state == {b"a": b"a2", b"c": b"c1"}

    async def test_replay_ends_where_the_log_ended_at_the_call(self, log: Log) -> None:
        positions = await log.write([new(TRACES, b"%d" % n) for n in range(3)])
        replay = log.replay(TRACES, 0, positions[1].offset)

        await log.write([new(TRACES, b"later")])

        assert [record.value async for record in replay] == [b"1", b"2"]

    async def test_what_does_not_exist_is_none(self, log: Log) -> None:
        assert await log.get(Position(TRACES, 0, 12345)) is None

    async def test_released_records_do_not_stop_a_reader(self, log: Log) -> None:
        positions = await log.write([new(SPANS, b"%d" % n) for n in range(4)])

        log.release(positions[1:3])
        await log.write([new(SPANS, b"4")])
        reader = log.read("assembly", SPANS)
        await assigned(reader)
        seen: list[bytes] = []
        while b"4" not in seen:
            seen += values(await take(reader, 1))

        # A hint: a log may keep them (Kafka does), but nothing else may go.
        assert [value for value in seen if value not in {b"1", b"2"}] == [b"0", b"3", b"4"]

    async def test_windows_have_one_partition(self, log: Log) -> None:
        assert log.partitions(WINDOWS) == 1
        assert log.partitions(SPANS) == PARTITIONS

    async def test_a_record_beyond_the_limit_is_refused_for_good(self, log: Log) -> None:
        with pytest.raises(RecordTooLarge):
            await log.write([new(TRACES, b"x" * ((20 << 20) + 1))])

        await log.write([new(TRACES, b"fits")])

        assert await all_of(log, TRACES) == [b"fits"]

    async def test_a_closed_log_takes_nothing_and_its_readers_end(self, log: Log) -> None:
        reader = log.read("assembly", SPANS)
        await assigned(reader)

        async with asyncio.TaskGroup() as tasks:
            poll = tasks.create_task(reader.poll(timeout=PATIENCE))
            await asyncio.sleep(0)
            await log.close()

        assert set(poll.result().revoked) == set(range(PARTITIONS))
        with pytest.raises(LogUnavailable):
            await log.write([new(SPANS, b"too late")])

    async def test_a_cancelled_poll_loses_nothing(self, log: Log) -> None:
        sent = [b"%d" % n * 1_200_000 for n in range(5)]
        await log.write([new(SPANS, value) for value in sent])
        reader = log.read("assembly", SPANS)
        await assigned(reader)

        seen: list[bytes] = []
        for _ in range(3):
            poll = asyncio.ensure_future(reader.poll(timeout=1.0))
            await asyncio.sleep(0)
            poll.cancel()
            await asyncio.wait({poll})
            if not poll.cancelled():
                seen += values(poll.result().records)
        seen += values(await take(reader, len(sent) - len(seen)))

        assert seen == sent


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
            [], [Commit(group="assembly", topic=SPANS, partition=0, offset=offset, marks=5)]
        )
        await first.close()

        second = other.read("assembly", SPANS)
        owned = await assigned(second)

        assert (owned[0].offset, owned[0].marks) == (offset, 5)
        assert values(await take(second, 2)) == [b"2", b"3"]


def owned_after(owned: set[int], batch: Batch) -> set[int]:
    """What a member owns after this poll."""
    return owned - set(batch.revoked) | {each.partition for each in batch.assigned}


class OwnedLogContract(LogContract):
    """Logs that own their records, their clock and their space: disk and memory.

    The fixture `small` is a log of SMALL bytes with one partition, `clock` and `telemetry` are both logs'.
    """

    async def test_a_call_that_fails_writes_nothing(self, log: Log) -> None:
        def fails(_: Sequence[Position]) -> bytes:
            raise KeyError("mine")

        commit = Commit(group="scoring", topic=TRACES, partition=0, offset=1)
        with pytest.raises(KeyError, match="mine"):
            await log.write(
                [new(TRACES, b"a"), New(topic=TRACES, key=b"", value=fails, partition=0)], [commit]
            )
        await log.write([new(TRACES, b"b")])

        assert await all_of(log, TRACES) == [b"b"]
        reader = log.read("scoring", TRACES)
        assert (await assigned(reader))[0].offset is None

    async def test_one_failing_call_does_not_disturb_its_neighbours(self, log: Log) -> None:
        def fails(_: Sequence[Position]) -> bytes:
            raise KeyError("mine")

        bad = New(topic=TRACES, key=b"", value=fails, partition=0)
        calls = [[new(TRACES, b"%d" % n)] if n % 3 else [bad] for n in range(12)]
        async with asyncio.TaskGroup() as tasks:
            written = [tasks.create_task(_outcome(log, call)) for call in calls]

        assert [task.result() for task in written] == [bool(n % 3) for n in range(12)]
        assert await all_of(log, TRACES) == [b"%d" % n for n in range(12) if n % 3]

    async def test_a_commit_never_goes_backwards(self, log: Log) -> None:
        for offset, marks in ((5, 3), (6, None), (2, 9)):
            commit = Commit(group="assembly", topic=SPANS, partition=0, offset=offset, marks=marks)
            await log.write([], [commit])

        reader = log.read("assembly", SPANS)
        owned = await assigned(reader)

        assert (owned[0].offset, owned[0].marks) == (6, 3)

    async def test_log_time_never_goes_back(self, log: Log, clock: SetClock) -> None:
        for now in (1000.0, 1000.5, 900.0, 2000.25, 1.0):
            clock.now = now
            await log.write([new(TRACES, b"")])

        times = [record.time async for record in log.replay(TRACES, 0)]

        assert times == [1000.0, 1000.5, 1000.5, 2000.25, 2000.25]

    async def test_the_end_is_now_and_holds_when_the_clock_jumps_back(
        self, log: Log, clock: SetClock
    ) -> None:
        reader = log.read("assembly", SPANS)
        await assigned(reader)

        clock.now = 5000.0
        end = (await at_end(reader)).ends[0]
        clock.now = 10.0
        await log.write([new(SPANS, b"after the tick")])
        (record,) = await take(reader, 1)

        assert end == 5000.0
        assert record.time >= end

    async def test_the_last_records_come_with_their_end(self, log: Log, clock: SetClock) -> None:
        await log.write([new(SPANS, b"%d" % n) for n in range(4)])
        reader = log.read("assembly", SPANS)
        await assigned(reader)
        clock.now += 1

        first = await reader.poll(max_records=3, timeout=0)
        second = await reader.poll(max_records=3, timeout=0)

        assert 0 not in first.ends
        assert len(second.records) == 1
        assert second.ends[0] == clock.now

    async def test_tombstones_belong_to_compacted_topics(self, log: Log) -> None:
        with pytest.raises(ValueError, match="tombstones"):
            await log.write([New(topic=TRACES, key=b"k", value=None, partition=0)])

    async def test_a_key_twice_in_one_call_keeps_the_newest(self, log: Log) -> None:
        await log.write([new(SESSIONS, b"1", b"k"), new(SESSIONS, b"2", b"k")])

        assert await all_of(log, SESSIONS) == [b"2"]

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
        reader = log.read("scoring", TRACES)
        await assigned(reader)

        batch = await reader.poll(timeout=0)

        assert 3 <= len(batch.records) < 5
        assert len(await take(reader, 5 - len(batch.records))) == 5 - len(batch.records)

    async def test_spans_go_when_released_or_committed(self, log: Log) -> None:
        positions = await log.write([new(SPANS, b"%d" % n) for n in range(5)])

        log.release([positions[3]])
        await log.write(
            [],
            [Commit(group="assembly", topic=SPANS, partition=0, offset=positions[1].offset)],
        )

        assert await all_of(log, SPANS) == [b"1", b"2", b"4"]
        assert await log.get(positions[0]) is None

    async def test_closings_go_below_the_marks(self, log: Log) -> None:
        positions = await log.write([new(CLOSINGS, b"%d" % n) for n in range(4)])
        commit = Commit(
            group="assembly", topic=SPANS, partition=0, offset=0, marks=positions[2].offset
        )

        await log.write([], [commit])

        assert await all_of(log, CLOSINGS) == [b"2", b"3"]

    async def test_signals_go_when_every_group_has_them(self, log: Log) -> None:
        (position,) = await log.write([new(SIGNALS, b"signal")])
        groups = sorted(GROUPS[SIGNALS])
        commits = [
            Commit(group=group, topic=SIGNALS, partition=0, offset=position.offset + 1)
            for group in groups
        ]

        await log.write([], commits[:-1])
        before = await all_of(log, SIGNALS)
        await log.write([], commits[-1:])

        assert before == [b"signal"]
        assert await all_of(log, SIGNALS) == []

    async def test_a_group_that_nobody_named_holds_nothing(self, log: Log) -> None:
        (position,) = await log.write([new(SPANS, b"span")])
        await log.write([], [Commit(group="removed", topic=SPANS, partition=0, offset=0)])

        await log.write(
            [],
            [Commit(group="assembly", topic=SPANS, partition=0, offset=position.offset + 1)],
        )

        assert await all_of(log, SPANS) == []

    async def test_full_spans_are_refused_until_a_commit_frees_them(self, small: Log) -> None:
        written = await fill(small, SPANS, 150_000)
        held = len(await all_of(small, SPANS))
        assert held == len(written)
        with pytest.raises(LogFull):
            await small.write([new(TRACES, b"with it"), new(SPANS, b"s" * 150_000)])
        assert await all_of(small, TRACES) == []

        await small.write([new(CLOSINGS, b"closing still fits")])
        half = written[held // 2].offset
        await small.write([], [Commit(group="assembly", topic=SPANS, partition=0, offset=half)])
        await small.write([new(SPANS, b"s" * 150_000)])

        assert len(await all_of(small, SPANS)) == held - held // 2 + 1

    async def test_release_alone_makes_room(self, small: Log) -> None:
        written = await fill(small, SPANS, 150_000)

        small.release(written)

        await small.write([new(SPANS, b"s" * 150_000)])
        assert len(await all_of(small, SPANS)) == 1

    async def test_the_oldest_traces_go_and_are_counted(
        self, small: Log, telemetry: Telemetry
    ) -> None:
        first = await small.write([new(TRACES, b"0" * 60_000) for _ in range(3)])
        done = first[1].offset
        await small.write(
            [],
            [Commit(group=g, topic=TRACES, partition=0, offset=done) for g in GROUPS[TRACES]],
        )

        for n in range(0, 200, 5):
            await small.write([new(TRACES, b"%06d" % m * 10_000) for m in range(n, n + 5)])
        count = 3 + 200
        kept = await all_of(small, TRACES)

        assert kept == [b"%06d" % n * 10_000 for n in range(200 - len(kept), 200)]
        assert dropped(telemetry, TRACES, "expired") == 1
        assert dropped(telemetry, TRACES, "unread") == count - len(kept) - 1

    async def test_the_oldest_signals_are_lost_per_sink_and_counted(
        self, small: Log, telemetry: Telemetry
    ) -> None:
        count = 600
        for n in range(0, count, 20):
            positions = await small.write([new(SIGNALS, b"%04d" % n * 1_000) for _ in range(20)])
            if n == 80:
                end = positions[-1].offset + 1
                await small.write(
                    [], [Commit(group="sink.jsonl", topic=SIGNALS, partition=0, offset=end)]
                )
        kept = len(await all_of(small, SIGNALS))

        assert 0 < kept < count - 100
        assert dropped(telemetry, SIGNALS, "share") == count - kept
        assert lost(telemetry, "prometheus") == count - kept
        assert lost(telemetry, "jsonl") == count - kept - 100

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
            await small.write([new(TRACES, b"x" * 900_000) for _ in range(6)])

    async def test_trimming_does_not_wait_for_a_slow_replay(self, small: Log) -> None:
        await small.write([new(TRACES, b"%d" % n * 20_000) for n in range(9)])
        replay = small.replay(TRACES, 0)
        first = await anext(replay)

        for _ in range(30):
            await small.write([new(TRACES, b"n" * 600_000)])
        rest = [record.value async for record in replay]

        assert first.value == b"0" * 20_000
        assert b"n" * 600_000 not in rest


def dropped(telemetry: Telemetry, topic: str, reason: str) -> float:
    return sample(telemetry, "spanwise_log_dropped_records_total", topic=topic, reason=reason)


def lost(telemetry: Telemetry, sink: str) -> float:
    return sample(telemetry, "spanwise_signals_total", sink=sink, result="lost")


def sample(telemetry: Telemetry, name: str, **labels: str) -> float:
    return telemetry.registry.get_sample_value(name, labels) or 0.0


async def _outcome(log: Log, call: Sequence[New]) -> bool:
    try:
        await log.write(call)
    except KeyError:
        return False
    return True

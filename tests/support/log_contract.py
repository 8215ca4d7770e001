"""What every Log must do. Each adapter subclasses `LogContract` and says how it is opened.

What only a log that owns its records can promise (one transaction, its own clock, shares) stands in
`owned_log_contract.py`, which Kafka's adapter does not subclass.
"""

import asyncio

import pytest

from collector.base.errors import LogUnavailable, RecordTooLarge
from collector.log.port import (
    CLOSINGS,
    SESSIONS,
    SIGNALS,
    SPANS,
    TRACES,
    WINDOWS,
    Commit,
    Lag,
    Log,
    New,
    Position,
    Record,
    partition_of,
)
from tests.support.log_steps import (
    PARTITIONS,
    PATIENCE,
    all_of,
    assigned,
    at_end,
    commit_of,
    commit_to,
    new,
    reading,
    take,
    values,
)


class LogContract:
    """Every adapter. The fixture `log` has PARTITIONS partitions and GROUPS."""

    @pytest.mark.parametrize("larger_than_a_page", [False, True])
    async def test_a_record_comes_back_as_it_was_written(
        self, log: Log, larger_than_a_page: bool
    ) -> None:
        times = 5000 if larger_than_a_page else 1
        headers = (("ce_id", b"\x00\xff"), ("ce_id", b"again" * times), ("empty", b""))
        key, value = b"s-1" * times, b"\x00value" * times
        await log.write([New(topic=SIGNALS, key=key, value=value, partition=1, headers=headers)])
        (record,) = [record async for record in log.replay(SIGNALS, 1)]

        assert (record.key, record.value, record.headers) == (key, value, headers)
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
        await commit_to(log, "assembly", SPANS, positions[4].offset, metadata=7)
        reader = log.read("assembly", SPANS)

        owned = await assigned(reader)
        records = await take(reader, 2)

        assert (owned[0].offset, owned[0].metadata) == (positions[4].offset, 7)
        assert values(records) == [b"4", b"5"]

    async def test_where_a_commit_is_its_records_are(self, log: Log) -> None:
        """At least once: on Kafka the records come first, on disk both at once."""
        (span,) = await log.write([new(SPANS, b"span")])
        commit = commit_of("assembly", SPANS, span.offset + 1)

        await log.write([new(TRACES, b"trace"), new(CLOSINGS, b"mark")], [commit])
        reader = log.read("assembly", SPANS)

        assert (await assigned(reader))[0].offset == span.offset + 1
        assert await all_of(log, TRACES) == [b"trace"]
        assert await all_of(log, CLOSINGS) == [b"mark"]

    async def test_closing_a_reader_commits_nothing(self, log: Log) -> None:
        await log.write([new(SPANS, b"once more")])
        first = await reading(log, "assembly", SPANS)
        await take(first, 1)
        await first.close()

        second = log.read("assembly", SPANS)
        owned = await assigned(second)

        assert owned[0].offset is None
        assert values(await take(second, 1)) == [b"once more"]

    async def test_groups_do_not_disturb_each_other(self, log: Log) -> None:
        positions = await log.write([new(TRACES, b"a"), new(TRACES, b"b")])
        await commit_to(log, "scoring", TRACES, positions[1].offset)

        scoring, api = log.read("scoring", TRACES), log.read("api", TRACES)
        await assigned(scoring)
        await assigned(api)

        assert values(await take(scoring, 1)) == [b"b"]
        assert values(await take(api, 2)) == [b"a", b"b"]

    async def test_a_value_may_name_the_position_before_it(self, log: Log) -> None:
        def mark(before: Position) -> bytes:
            return repr(tuple(before)).encode()

        named = [New(topic=CLOSINGS, key=b"t", value=mark, partition=2) for _ in range(2)]
        traces = [new(TRACES, b"1"), new(TRACES, b"2")]
        positions = await log.write([traces[0], named[0], traces[1], named[1]])

        marks = await all_of(log, CLOSINGS, 2)
        assert marks == [repr(tuple(each)).encode() for each in positions[::2]]

    async def test_a_poll_waits_for_what_comes(self, log: Log) -> None:
        reader = await reading(log, "assembly", SPANS)
        await at_end(reader)

        async with asyncio.TaskGroup() as tasks:
            poll = tasks.create_task(reader.poll(timeout=PATIENCE))
            await asyncio.sleep(0)
            await log.write([new(SPANS, b"news")])

        assert values(poll.result().records) == [b"news"]

    async def test_the_end_is_reported_only_with_the_last_record(self, log: Log) -> None:
        await log.write([new(SPANS, b"%d" % n) for n in range(4)])
        reader = await reading(log, "assembly", SPANS)

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
        reader = await reading(log, "assembly", SPANS)
        seen: list[bytes] = []
        while b"4" not in seen:
            seen += values(await take(reader, 1))

        # A hint: a log may keep them (Kafka does), but nothing else may go.
        assert [value for value in seen if value not in {b"1", b"2"}] == [b"0", b"3", b"4"]

    async def test_a_group_lags_by_what_it_has_not_committed(self, log: Log) -> None:
        """Age and number of what waits, from the commit, or from where the reader stands; nothing behind the end."""
        reader = await reading(log, "assembly", SPANS)
        nothing = await log.lag("assembly", SPANS)
        await log.write([new(SPANS, b"%d" % n) for n in range(3)])
        await log.write([new(SPANS, b"3", partition=1)])
        records = sorted(await take(reader, 4), key=lambda each: each.position)

        def commit(record: Record) -> Commit:
            _, partition, offset = record.position
            return Commit(group="assembly", topic=SPANS, partition=partition, offset=offset + 1)

        whole = await log.lag("assembly", SPANS)
        unread = await log.lag("assembly", SPANS, unread=True)
        await log.write([], [commit(records[0]), commit(records[3])])
        rest = await log.lag("assembly", SPANS)
        await log.write([], [commit(records[2])])
        done = await log.lag("assembly", SPANS)

        assert whole is not None
        assert whole.records == 4
        assert whole.oldest is not None
        assert abs(whole.oldest - records[0].time) < PATIENCE
        assert rest == Lag(2, records[1].time)
        assert nothing == unread == done == Lag()

    async def test_windows_have_one_partition(self, log: Log) -> None:
        assert log.partitions(WINDOWS) == 1
        assert log.partitions(SPANS) == PARTITIONS

    async def test_a_record_beyond_the_limit_is_refused_for_good(self, log: Log) -> None:
        with pytest.raises(RecordTooLarge):
            await log.write([new(TRACES, b"x" * ((20 << 20) + 1))])

        await log.write([new(TRACES, b"fits")])

        assert await all_of(log, TRACES) == [b"fits"]

    async def test_reading_and_writing_go_on_while_the_process_stops(self, log: Log) -> None:
        reader = await reading(log, "assembly", SPANS)

        log.begin_shutdown()
        await log.write([new(SPANS, b"among the last")])

        assert values(await take(reader, 1)) == [b"among the last"]

    async def test_a_closed_log_takes_nothing_and_its_readers_end(self, log: Log) -> None:
        reader = await reading(log, "assembly", SPANS)

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
        reader = await reading(log, "assembly", SPANS)

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

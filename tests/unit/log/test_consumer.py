"""The loop that every room reads with: what it hands to the room, what it commits, how it waits and ends."""

import asyncio
from collections.abc import Callable

import pytest

from collector.base.errors import LogUnavailable
from collector.base.retry import Retry
from collector.base.telemetry import Telemetry
from collector.log.consumer import REST, Consumer, Offsets
from collector.log.memory import MemoryLog
from collector.log.port import Assigned, Batch, Commit, Log, New, Position, Record
from tests.support.faulty_log import FaultyLog, unavailable


class Room(Consumer):
    """Keeps what it takes; `on_take` may stop it, or take a partition away."""

    def __init__(
        self, log: Log, *, batch: int = 2, last_attempts: int = 1, timeout: float = 1.0
    ) -> None:
        self.telemetry = Telemetry()
        self.waits: list[float] = []
        super().__init__(
            log=log,
            group="room",
            topic="traces",
            retry=Retry("The room", self._sleep, last_attempts=last_attempts),
            telemetry=self.telemetry,
            max_records=batch,
            timeout=timeout,
        )
        self.steps: list[str] = []
        self.records: list[bytes] = []
        self.on_take: Callable[[], None] = lambda: None

    async def wait_for_capacity(self) -> None:
        self.steps.append("wait")

    async def revoke(self, partition: int) -> None:
        self.steps.append(f"revoke {partition}")

    async def assign(self, assigned: Assigned) -> None:
        self.steps.append(f"assign {assigned.partition}")

    async def take(self, batch: Batch) -> None:
        self.steps.append(f"take {len(batch.records)}")
        for record in batch.records:
            self._take(record)
            self._offsets.done(record.position)
        self.on_take()

    async def finish(self) -> None:
        self.steps.append("finish")
        await super().finish()

    async def read_to_end(self) -> None:
        async with self._joined():
            await self._read_to_end()
            await self.finish()

    def _take(self, record: Record) -> None:
        if record.value == b"poison":
            self._poison.unprocessable(record.position, "it is poison")
        else:
            self.records.append(record.value)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


class RestingRoom(Room):
    """One that time alone changes nothing for."""

    @property
    def is_at_rest(self) -> bool:
        return True


async def a_log(*values: bytes, partitions: int = 1) -> FaultyLog:
    log = FaultyLog(partitions=partitions)
    news = [
        New(topic="traces", key=b"k", value=value, partition=number % partitions)
        for number, value in enumerate(values)
    ]
    await log.write(news)
    log.commits.clear()
    return log


def committed(log: FaultyLog) -> dict[int, int]:
    return {commit.partition: commit.offset for commit in log.commits}


async def test_a_room_meets_its_steps_in_order_and_every_batch_is_committed() -> None:
    log = await a_log(b"1", b"2", b"3")
    room = Room(log)

    await room.read_to_end()

    assert room.steps == [
        *("wait", "assign 0", "take 0"),
        *("wait", "take 2"),
        *("wait", "take 1"),
        "finish",
    ]
    assert [commit.offset for commit in log.commits] == [2, 3]
    assert log.readers[0].is_closed


async def test_a_stop_waits_for_no_poll() -> None:
    log = MemoryLog(clock=lambda: 1.0)
    await log.write([New(topic="traces", key=b"k", value=b"1", partition=0)])
    room, stopping, taken = Room(log, timeout=1000.0), asyncio.Event(), asyncio.Event()
    room.on_take = lambda: taken.set() if room.records else None

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(room.run(stopping))
        await taken.wait()
        for _ in range(100):  # it polls
            await asyncio.sleep(0)
        stopping.set()

    assert room.steps[-3:] == ["wait", "take 0", "finish"]


async def test_poison_is_counted_named_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    log = await a_log(b"1", b"poison", b"3")
    room = Room(log)

    await room.read_to_end()

    assert room.records == [b"1", b"3"]
    assert committed(log) == {0: 3}
    labels = {"topic": "traces"}
    registry = room.telemetry.registry
    assert registry.get_sample_value("spanwise_poison_records_total", labels) == 1
    assert [record.message for record in caplog.records] == [
        "A record of `traces`, partition 0, offset 1, can never be processed and is passed over: it is poison"
    ]


async def test_an_outage_of_the_log_is_waited_out_and_loses_no_record() -> None:
    log = await a_log(b"1", b"2", b"3")
    log.write_failures = unavailable(3)
    room = Room(log)
    room._retry.stopping = asyncio.Event()

    await room.read_to_end()

    assert room.records == [b"1", b"2", b"3"]
    assert committed(log) == {0: 3}
    assert room.waits == [0.1, 0.2, 0.4]


async def test_a_stop_ends_the_loop_after_the_batch_and_finishes() -> None:
    log = await a_log(b"1", b"2", b"3")
    room = Room(log)
    stopping = asyncio.Event()
    room.on_take = lambda: stopping.set() if room.records else None

    await room.run(stopping)

    assert room.records == [b"1", b"2"]
    assert room.steps[-1] == "finish"
    assert committed(log) == {0: 2}


async def test_a_stop_during_an_outage_leaves_the_records_to_the_next_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = await a_log(b"1", b"2")
    room = Room(log)
    stopping = asyncio.Event()

    def fail() -> None:
        if room.records:
            log.write_failures = unavailable(10)
            stopping.set()

    room.on_take = fail
    await room.run(stopping)

    assert committed(log) == {}
    assert "what is unwritten waits in the log" in caplog.text
    again = Room(log)
    log.write_failures.clear()
    await again.read_to_end()
    assert again.records == [b"1", b"2"]


async def test_a_revoked_partition_is_not_committed() -> None:
    log = await a_log(b"1", b"2", partitions=2)
    room = Room(log)

    async with room._joined():
        await room.step()
        room._offsets.done(Position("traces", 0, 0))
        room._offsets.done(Position("traces", 1, 0))
        log.readers[0].revoke(1)
        await room.step()

    assert room.steps[-2:] == ["revoke 1", "take 0"]
    assert committed(log) == {0: 1}


@pytest.mark.parametrize(
    ("kind", "timeout", "polls"), [(Room, 1.0, 30), (Room, 0.5, 60), (RestingRoom, 0.5, 30)]
)
async def test_a_member_without_partitions_gives_up_reading_to_the_end(
    kind: type[Room], timeout: float, polls: int
) -> None:
    room = kind(FaultyLog(partitions=0), timeout=timeout)

    await room.read_to_end()

    assert room.steps.count("wait") == polls


async def test_a_partition_is_read_to_its_end_again_after_it_came_back() -> None:
    log = await a_log(b"1")
    room = Room(log)

    async with room._joined():
        await room.step()
        await room.step()
        assert room._at_end == {0}
        log.readers[0].revoke(0)
        log.readers[0].assign(0)
        await room.step()
        assert room._at_end == set()


def test_offsets_that_moved_on_during_a_commit_stay_to_be_committed() -> None:
    offsets = Offsets("room", "traces")
    offsets.done(Position("traces", 0, 4))
    commits = offsets.commits()
    offsets.done(Position("traces", 0, 5))

    offsets.committed(commits)

    assert commits == [Commit(group="room", topic="traces", partition=0, offset=5)]
    assert [commit.offset for commit in offsets.commits()] == [6]


async def test_an_outage_without_a_stop_in_sight_is_an_error_after_the_last_attempt() -> None:
    log = await a_log(b"1")
    log.write_failures = unavailable(10)
    room = Room(log, last_attempts=3)

    with pytest.raises(LogUnavailable):
        await room.read_to_end()

    assert len(log.write_failures) == 7


@pytest.mark.parametrize(
    ("kind", "timeout", "waits"),
    [(Room, 0.25, 0.25), (RestingRoom, 0.25, REST), (RestingRoom, 5.0, 5.0)],
)
async def test_a_poll_waits_longer_while_time_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, kind: type[Room], timeout: float, waits: float
) -> None:
    room = kind(await a_log(), timeout=timeout)
    room.join()
    asked: list[float] = []
    poll = room._reader.poll

    async def note(*, max_records: int = 256, timeout: float = 1.0) -> Batch:
        asked.append(timeout)
        return await poll(max_records=max_records, timeout=timeout)

    monkeypatch.setattr(room._reader, "poll", note)

    await room.step()

    assert asked == [waits]

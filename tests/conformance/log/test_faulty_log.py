"""The log of the tests keeps the contract of the logs, whole and torn."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from collector.base.telemetry import Telemetry
from collector.log.port import SIGNALS, SPANS, TRACES, Commit, Log, New
from tests.support.deletes_spans_contract import DeletesSpans
from tests.support.faulty_log import Crash, FaultyLog
from tests.support.log_contract import LogContract
from tests.support.log_steps import GROUPS, PARTITIONS, all_of, assigned, new, take
from tests.support.owned_log_contract import OwnedLogContract
from tests.support.ticking import SetClock


class TestFaultyLog(DeletesSpans, OwnedLogContract):
    @pytest.fixture
    async def log(self, clock: SetClock, telemetry: Telemetry) -> AsyncIterator[Log]:
        log = FaultyLog(clock=clock, telemetry=telemetry, partitions=PARTITIONS, groups=GROUPS)
        yield log
        await log.close()

    @pytest.fixture
    async def small(self, clock: SetClock, telemetry: Telemetry) -> AsyncIterator[Log]:
        log = FaultyLog(clock=clock, telemetry=telemetry, max_size=8 << 20, groups=GROUPS)
        yield log
        await log.close()

    @pytest.fixture
    async def patient(self, clock: SetClock, telemetry: Telemetry) -> AsyncIterator[Log]:
        log = FaultyLog(
            clock=clock,
            telemetry=telemetry,
            max_size=8 << 20,
            groups=GROUPS,
            waits_for={TRACES: frozenset({"scoring"})},
        )
        yield log
        await log.close()


class TestFaultyLogThatIsNotAtomic(LogContract):
    """As Kafka: every write ends in its records and its commits, one by one."""

    @pytest.fixture
    async def log(self, clock: SetClock, telemetry: Telemetry) -> AsyncIterator[Log]:
        log = FaultyLog(
            clock=clock, telemetry=telemetry, partitions=PARTITIONS, groups=GROUPS, atomic=False
        )
        yield log
        await log.close()


COMMIT = Commit(group="assembly", topic=SPANS, partition=0, offset=1)


async def test_a_crash_takes_every_later_call_and_leaves_the_records() -> None:
    log = FaultyLog()
    await log.write([new(SPANS, b"before")])

    log.restart(crash_at=1)
    for _ in range(2):
        with pytest.raises(Crash):
            await log.write([new(SPANS, b"after")])
    log.restart()

    assert await all_of(log, SPANS) == [b"before"]


@pytest.mark.parametrize(("atomic", "stored"), [(True, []), (False, [b"first"])])
async def test_a_crash_within_a_write_tears_it_only_where_writes_are_not_atomic(
    atomic: bool, stored: list[bytes]
) -> None:
    log = FaultyLog(atomic=atomic)
    log.crash_after = 1

    with pytest.raises(Crash):
        await log.write([new(TRACES, b"first"), new(TRACES, b"second")], [COMMIT])
    log.restart()

    assert await all_of(log, TRACES) == stored
    assert log.commits == []


async def test_a_partition_that_comes_back_goes_on_from_its_commit() -> None:
    log = FaultyLog(groups=GROUPS)
    await log.write([new(SPANS, b"0"), new(SPANS, b"1")])
    reader = log.read("assembly", SPANS)
    await assigned(reader)
    await take(reader, 2)
    await log.write([], [COMMIT])

    log.readers[-1].revoke(0)
    revoked = await reader.poll()
    log.readers[-1].assign(0)

    assert revoked.revoked == (0,)
    assert (await assigned(reader))[0].offset == 1
    assert [each.value for each in await take(reader, 1)] == [b"1"]


async def test_records_that_expire_unread_are_reported_as_lost() -> None:
    log = FaultyLog(groups=GROUPS)
    await log.write([New(topic=SIGNALS, key=b"k", value=b"%d" % n) for n in range(5)])
    reader = log.read("sink.jsonl", SIGNALS)
    await assigned(reader)

    log.expire_below(3, SIGNALS)
    batch = await reader.poll()

    assert batch.lost == {0: 3}
    assert [each.value for each in batch.records] == [b"3", b"4"]

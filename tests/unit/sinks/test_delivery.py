"""One reader per sink: what it counts, what it commits, how it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from collector.base.errors import Retryable
from collector.base.telemetry import Telemetry
from collector.log.port import SIGNALS, Commit, New
from collector.records.signal_batch import NewSignal, Published, made, signal_records
from collector.sinks.port import Refused
from tests.support.clocks import eventually
from tests.support.faulty_log import FaultyLog
from tests.support.signals import new, signal
from tests.support.sink_contract import a_delivery, committed, count, delivering, outbox


@dataclass
class ListSink:
    """Keeps what it gets; fails and hangs as often as set."""

    name: ClassVar[str] = "list"
    failures: int = 0
    hangs: int = 0
    refuses: frozenset[int] = frozenset()
    got: list[Published] = field(default_factory=list[Published])
    closed: float | None = None

    async def deliver(self, signals: Sequence[Published]) -> None:
        if self.hangs:
            self.hangs -= 1
            await asyncio.Event().wait()
        if self.failures:
            self.failures -= 1
            raise Retryable("set to fail")
        bad = {r.position: "bad" for r in signals if r.position.offset in self.refuses}
        self.got += [each for each in signals if each.position not in bad]
        if bad:
            raise Refused(bad)

    async def close(self, deadline: float) -> None:
        self.closed = deadline


async def written(count: int) -> FaultyLog:
    log = FaultyLog()
    await log.write([new(signal(trace=f"t-{number}")) for number in range(count)])
    return log


async def delivered(log: FaultyLog, sink: ListSink, up_to: int) -> Telemetry:
    async with delivering(log, sink) as telemetry:
        await committed(log, up_to)
    return telemetry


def step_of(session: str, count: int) -> list[NewSignal]:
    return [made(signal(session, f"t-{number}")) for number in range(count)]


async def test_a_record_that_holds_no_signals_is_lost_by_what_it_held() -> None:
    log = await written(2)
    await log.write([New(topic=SIGNALS, key=b"s-1", value=b"\x90", count=5)])
    await log.write([New(topic=SIGNALS, key=b"s-1", value=b"{}")])
    sink = ListSink(failures=1)

    telemetry = await delivered(log, sink, 8)

    assert [each.position.offset for each in sink.got] == [0, 1]
    assert (count(telemetry, "acked"), count(telemetry, "lost")) == (2, 6)


async def test_signals_of_one_record_are_counted_and_refused_one_by_one() -> None:
    log = FaultyLog()
    step = step_of("s-1", 10)
    await log.write(signal_records(step, joined=True))
    sink = ListSink(failures=2, refuses=frozenset({2, 5}))
    async with delivering(log, ListSink(hangs=1), grace=0.01) as before:
        await eventually(lambda: outbox(before, "list") == (10, log.clock.now))

    telemetry = await delivered(log, sink, 10)

    assert [each.json for each in sink.got] == [
        each.json for number, each in enumerate(step) if number not in {2, 5}
    ]
    assert count(telemetry, "retried") == 20
    assert (count(telemetry, "acked"), count(telemetry, "lost")) == (8, 2)
    assert outbox(telemetry, "list") == (0, None)


async def test_what_the_log_dropped_of_joined_signals_is_lost_by_their_number() -> None:
    log = FaultyLog()
    for session in range(3):
        await log.write(signal_records(step_of(f"s-{session}", 4), joined=True))
    await log.write((), [Commit(group="sink.list", topic=SIGNALS, partition=0, offset=4)])
    log.expire_below(8, SIGNALS)

    telemetry = await delivered(log, ListSink(), 12)

    assert (count(telemetry, "acked"), count(telemetry, "lost")) == (4, 4)


async def test_a_stop_during_a_hang_is_bounded_and_commits_nothing() -> None:
    log = await written(10)
    sink = ListSink(hangs=1)

    async with delivering(log, sink, grace=0.05, within=5) as telemetry:
        await eventually(lambda: outbox(telemetry, "list") == (10, log.clock.now))

    assert log.commits == []
    assert outbox(telemetry, "list") == (10, log.clock.now)
    assert sink.closed == 0.05


async def test_a_delivery_that_ends_within_the_grace_is_committed() -> None:
    """A stop does not throw away what was just delivered."""
    log = await written(1)
    stopping = asyncio.Event()

    @dataclass
    class Slow(ListSink):
        async def deliver(self, signals: Sequence[Published]) -> None:
            stopping.set()
            await asyncio.sleep(0.01)
            self.got += signals

    sink = Slow()
    delivery, telemetry = a_delivery(log, sink)

    async with asyncio.timeout(5):
        await delivery.run(stopping)

    assert log.committed("sink.list", "signals", 0).offset == 1
    assert count(telemetry, "acked") == 1


async def test_an_empty_outbox_has_no_age() -> None:
    """An age of 0, or since 1970, would be an alert about nothing."""
    log = await written(10)
    async with delivering(log, ListSink(failures=1)) as telemetry:
        assert outbox(telemetry, "list") == (0, None)
        await eventually(lambda: outbox(telemetry, "list") == (10, log.clock.now))
        await committed(log, 10)
        await eventually(lambda: outbox(telemetry, "list") == (0, None))


@pytest.mark.parametrize(("drains", "acked"), [(True, 3000), (False, 0)])
async def test_a_process_that_will_not_come_back_hands_over_what_the_log_holds(
    drains: bool, acked: int
) -> None:
    """Signals of the drain are written just before the stop: with a durable log they wait, with another they ended."""
    log = await written(3000)
    sink = ListSink(failures=2)
    delivery, telemetry = a_delivery(log, sink, drains=drains)
    stopping = asyncio.Event()
    stopping.set()

    async with asyncio.timeout(10):
        await delivery.run(stopping)

    assert len(sink.got) == count(telemetry, "acked") == acked


async def test_a_drain_ends_with_its_grace_and_passes_nothing_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = await written(3000)
    sink = ListSink(hangs=1)
    delivery, _ = a_delivery(log, sink, drains=True, grace=0.05)
    stopping = asyncio.Event()
    stopping.set()

    async with asyncio.timeout(10):
        await delivery.run(stopping)

    assert sink.got == log.commits == []
    assert "did not take every signal before the stop" in caplog.text

"""The shell of assembly: faults, bounds, drains and partitions that go and come."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from unittest.mock import Mock

import pytest

from collector.assembly import closing_pipeline
from collector.assembly.closing_pipeline import READERS
from collector.base.errors import LogUnavailable
from collector.log.port import SPANS, TRACES, Lag
from collector.reading.port import PackedTrace, ReadJob
from tests.support.assembling import Site
from tests.support.faulty_log import unavailable
from tests.support.reading import ReadingWorkers, packed_read
from tests.support.spans import Made, child, remote, root, trace_id


async def test_workers_that_fail_are_asked_again() -> None:
    site = Site()
    site.workers.failures = [BrokenPipeError(), RuntimeError("died")]
    site.send(100, root())

    await site.once(106)
    await site.once(106)

    assert len(site.traces()) == 1


def with_traces(count: int) -> Site:
    """Traces 1 to `count`, of a root each, were sent at 100."""
    site = Site()
    for trace in range(1, count + 1):
        site.send(100, root(trace=trace))
    return site


async def test_stopping_does_not_wait_for_ever_for_a_dead_log() -> None:
    site = Site()
    site.send(100, root())
    async with site.running():
        await site.polled()
        site.log.write_failures = unavailable(10_000)
        site.clock.now = 106
        await site.polled()
    assert site.traces() == []

    await site.once(107)

    assert len(site.traces()) == 1


async def test_reading_stops_while_too_much_is_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing_pipeline, "IN_FLIGHT_TRACES", 5)
    site = with_traces(10)
    site.workers.gate = asyncio.Event()
    async with site.running():
        site.clock.now = 106
        await site.until(lambda: len(site.workers.jobs) >= 5)
        polls = site.log.readers[-1].polls
        for _ in range(50):
            await asyncio.sleep(0)
        assert site.log.readers[-1].polls == polls
        site.workers.gate.set()
        await site.until(lambda: len(site.traces()) == 10)


async def test_what_is_finished_is_written_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Receivers write to the same log: a long write would keep their senders waiting."""
    monkeypatch.setattr(closing_pipeline, "WRITE_BYTES", 1)
    site = with_traces(5)

    await site.once(106)

    portions = [sum(each.topic == TRACES for each in new) for new, _ in site.log.calls]
    assert [each for each in portions if each] == [1] * 5
    assert len(site.traces()) == 5


async def test_nothing_more_is_read_while_much_waits_to_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(closing_pipeline, "BATCH_TRACES", 1)
    monkeypatch.setattr(closing_pipeline, "RESULT_BYTES", 1)
    site = with_traces(20)
    async with site.running():
        await site.polled()
        site.log.write_failures = unavailable(10_000)
        site.clock.now = 106
        await site.until(lambda: len(site.workers.jobs) >= 4)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(site.workers.jobs) <= 8, "the batches that were read at once"
        site.log.write_failures.clear()
        await site.until(lambda: len(site.traces()) == 20)


async def test_many_services_cost_no_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 300
    looks = Mock(wraps=closing_pipeline._is_ready)
    monkeypatch.setattr(closing_pipeline, "_is_ready", looks)
    site = Site()
    for trace in range(1, count + 1):
        site.send(100, Made(trace=trace, span=1, service=f"shop-{trace}"))
    async with site.running():
        site.clock.now = 106
        await site.until(lambda: len(site.traces()) == count)

    assert looks.call_count < 100 * count


@dataclass(slots=True, kw_only=True)
class _StuckWorkers(ReadingWorkers):
    """Reads traces of the service `stuck` only once the gate is open, the others at once."""

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[PackedTrace | None]:
        self.jobs += jobs
        if self.gate is not None and any(job.service == "stuck" for job in jobs):
            await self.gate.wait()
        return [packed_read(job) for job in jobs]


async def test_traces_of_one_service_that_take_long_hold_up_no_other_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(closing_pipeline, "BATCH_TRACES", 1)
    gate = asyncio.Event()
    workers = _StuckWorkers(gate=gate)
    site = Site(workers=workers)
    for trace in range(1, 36):
        service = "stuck" if trace <= 30 else "modest"
        site.send(100, Made(trace=trace, span=1, service=service))
    async with site.running():
        site.clock.now = 106
        await site.until(lambda: len(site.traces()) == 5)
        assert {each.trace.service for each in site.traces()} == {"modest"}
        assert sum(job.service == "stuck" for job in workers.jobs) == READERS // 2
        gate.set()
        await site.until(lambda: len(site.traces()) == 35)
        await site.polled()

    written = sorted(each.trace.trace_id for each in site.traces())
    assert written == [trace_id(each).hex() for each in range(1, 36)], "each of them once"


@pytest.mark.parametrize("is_open", [False, True])
async def test_marks_are_bounded_and_where_a_reread_needs_them_the_old_trace_closes(
    is_open: bool,
) -> None:
    site = Site(max_marks=10)
    if is_open:
        site.send(100, child(2, trace=99))
    for trace in range(1, 31):
        site.send(100 + trace, root(trace=trace))

    await site.once(200)
    await site.once(201)

    assert len(site.traces()) == 30 + is_open
    assert site.count("marks_evicted_total") >= 20
    assert site.count("traces_closed_total", service="shop", reason="memory") == is_open


@pytest.mark.parametrize("by_ref", [False, True])
async def test_a_drain_at_the_end_writes_in_the_order_of_start(by_ref: bool) -> None:
    site = Site(partitions=3, by_ref=by_ref)
    for trace, start in enumerate([50, 10, 30, 10, 20], 1):
        top = {3: child(1, 7), 4: remote(1, 7)}.get(trace, root(1))
        site.send(100, replace(top, trace=trace, start=start), partition=trace % 3)

    await site.drained("end")

    closed = {int(each.trace.trace_id, 16): each.trace.closed for each in site.traces()}
    assert [*closed] == [2, 4, 5, 3, 1]
    assert closed.pop(3) == "idle"
    assert set(closed.values()) == {"root_ended"}


async def test_a_drain_after_a_run_goes_on_where_it_stopped() -> None:
    site = Site()
    site.send(100, child(2))
    async with site.running() as assembler:
        await site.polled()
    site.send(101, child(3))

    await assembler.drain("shutdown")

    (record,) = site.traces()
    assert (record.trace.closed, record.trace.spans) == ("shutdown", 2)
    assert site.log.committed("assembly", SPANS, 0).offset == 2


async def test_a_partition_that_comes_back_goes_on_with_its_open_traces() -> None:
    site = Site(partitions=2)
    site.send(100, root(trace=1))
    site.send(100, child(2, trace=2), partition=1)
    async with site.running():
        await site.polled()
        reader = site.log.readers[-1]
        site.send(101, child(2, trace=1))
        await site.polled(2)
        reader.revoke(0)
        await site.polled(2)
        reader.assign(0)
        await site.polled(3)
        assert site.log.replayed == [0, 1], "its marks are not read again"
        site.clock.now = 106
        await site.until(lambda: bool(site.traces()))

    (record,) = site.traces()
    assert record.trace.spans == 2
    assert site.count("spans_ignored_total", reason="duplicate") == 0


async def test_a_partition_that_was_somebody_elses_is_read_afresh() -> None:
    site = Site(partitions=1)
    site.send(100, root())
    async with site.running():
        await site.polled()
        site.log.readers[-1].revoke(0)
        await site.polled(2)
        other = Site(clock=site.clock)
        other.log = site.log.other_process()
        await other.once(106)
        assert len(site.traces()) == 1
        site.log.readers[-1].assign(0)
        await site.polled(4)

    assert len(site.traces()) == 1


async def test_a_drain_that_cannot_write_says_so() -> None:
    site = Site()
    site.send(100, root())
    site.log.restart()
    site.log.write_failures = unavailable(100)

    with pytest.raises(LogUnavailable):
        await site.assembler().drain("end")


async def test_lag_is_a_closed_trace_that_is_not_written_and_never_an_open_one() -> None:
    site = Site()
    site.workers.gate = asyncio.Event()
    site.send(100, child(span=2))
    site.send(101, root(trace=2))
    async with site.running() as assembler:
        await site.polled()
        open_traces = assembler.unwritten()
        site.clock.now = 110
        await site.until(lambda: bool(site.workers.jobs))
        closed = assembler.unwritten()
        site.workers.gate.set()
        await site.until(lambda: bool(site.traces()))
        await site.polled()

        assert open_traces == Lag()
        assert closed == Lag(1, 107.0)  # since its root's grace has ended
        assert assembler.unwritten() == Lag()

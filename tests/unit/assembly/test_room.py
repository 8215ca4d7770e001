"""The shell of assembly over a list-backed log."""

import asyncio

import pytest

from collector.config import TraceWindow, Windows
from collector.errors import LogUnavailable
from collector.log.port import SPANS, TRACES, Position
from collector.records import session_key
from evaluators.digest import trace_digest
from tests.support.assembling import WINDOWS, Site
from tests.support.list_log import Disk, unavailable
from tests.support.spans import Made, child, request, root, span_id, trace_id


async def test_a_closed_trace_is_written_marked_and_committed() -> None:
    site = Site()
    site.send(100, child(2), root(session="s"))

    await site.once(106)

    (record,) = site.traces()
    assert record.trace.digest == trace_digest([span_id(1).hex(), span_id(2).hex()])
    assert (record.trace.closed, record.revision, record.seen) == ("root_ended", 0, 100)
    assert record.spans == (request(child(2), root(session="s")),)
    (mark,) = site.marks()
    assert (mark.reach, mark.closed_at, mark.session_key) == (0, 106, session_key("shop", "s"))
    (stored,) = site.disk.all(TRACES)
    assert stored.position == Position(TRACES, mark.traces_partition, mark.traces_offset)
    assert stored.key == mark.session_key
    assert site.disk.commits["assembly", SPANS, 0].offset == 1
    assert site.disk.released == {Position(SPANS, 0, 0)}
    assert site.count("traces_closed_total", service="shop", reason="root_ended") == 1
    assert site.count("traces_active") == 0
    assert site.count("buffer_bytes") == 0


async def test_stopping_closes_nothing() -> None:
    site = Site()
    site.send(100, root())

    await site.once(103)

    assert site.traces() == []
    assert site.disk.commits == {} or site.disk.commits["assembly", SPANS, 0].offset == 0


async def test_the_idle_tick_spares_a_reader_that_is_not_at_the_end() -> None:
    site = Site()
    site.send(100, root())
    site.send(101, child(2))
    async with site.running():
        site.log.readers[-1].lag = 1
        site.now.time = 500
        await site.polled()
        assert site.traces() == []
        site.log.readers[-1].lag = 0
        await site.until(lambda: bool(site.traces()))

    (record,) = site.traces()
    assert record.trace.spans == 2


async def test_a_late_span_makes_a_revision() -> None:
    site = Site()
    site.send(100, root(session="s"))
    await site.once(106)
    site.send(200, child(2), root(session="s"))

    await site.once(206)

    first, second = site.traces()
    assert (second.revision, second.trace.spans, second.seen) == (1, 2, 200)
    assert second.spans == (*first.spans, request(child(2)))
    assert site.count("late_spans_total", service="shop", action="revised") == 1
    assert site.count("late_spans_total", service="shop", action="duplicate") == 1
    assert site.count("traces_closed_total", service="shop", reason="root_ended") == 1
    assert [mark.revision for mark in site.marks()] == [0, 1]


async def test_late_copies_make_no_revision() -> None:
    site = Site()
    site.send(100, child(2), root())
    await site.once(106)
    site.send(200, child(2))

    await site.once(206)

    assert len(site.traces()) == 1
    assert site.count("late_spans_total", service="shop", action="duplicate") == 1
    assert site.disk.commits["assembly", SPANS, 0].offset == 2


@pytest.mark.parametrize("why", ["too late", "too many revisions", "expired"])
async def test_late_spans_are_ignored(why: str) -> None:
    windows = WINDOWS
    if why == "too many revisions":
        windows = Windows(trace=WINDOWS.trace.model_copy(update={"max_revisions": 0}))
    site = Site(windows=windows)
    site.send(100, root())
    await site.once(106)
    if why == "expired":
        site.disk.records[TRACES, 0].clear()
    site.send(707 if why == "too late" else 200, child(2), child(3))

    await site.once(1000)

    assert len(site.marks()) == 1
    assert site.count("late_spans_total", service="shop", action="ignored") == 2
    assert site.disk.commits["assembly", SPANS, 0].offset == 2


async def test_a_revision_never_outgrows_the_limits_of_a_trace() -> None:
    site = Site(windows=Windows(trace=TraceWindow(root_grace=6, max_spans=2)))
    site.send(100, root(), child(2))
    site.send(101, child(3))

    await site.once(200)

    (record,) = site.traces()
    assert record.trace.closed == "max_spans"
    assert site.count("late_spans_total", service="shop", action="ignored") == 1


async def test_a_revised_trace_stays_in_its_session() -> None:
    site = Site()
    site.send(100, child(2))
    await site.once(400)
    site.send(500, root(session="other"))

    await site.once(506)

    first, second = site.traces()
    assert first.trace.session_id == second.trace.session_id == first.trace.trace_id
    assert second.trace.session_source == "trace"
    assert second.session_changed
    keys = {record.key for record in site.disk.all(TRACES)}
    assert keys == {session_key("shop", first.trace.trace_id)}
    assert site.count("late_spans_total", service="shop", action="session_changed") == 1


async def test_a_late_span_of_a_trace_in_flight_makes_a_revision() -> None:
    site = Site()
    site.workers.gate = asyncio.Event()
    site.send(100, root())
    async with site.running():
        site.now.time = 106
        await site.until(lambda: bool(site.workers.jobs))
        site.send(107, child(2))
        await site.polled()
        site.now.time = 113
        await site.polled()
        assert site.traces() == []
        site.workers.gate.set()
        await site.until(lambda: len(site.traces()) == 2)

    assert [record.trace.spans for record in site.traces()] == [1, 2]
    assert [record.revision for record in site.traces()] == [0, 1]


async def test_several_traces_in_one_record_each_close() -> None:
    site = Site()
    site.send(100, root(trace=1), child(2, trace=2), root(trace=3))
    await site.once(106)

    assert len(site.traces()) == 2
    assert site.disk.commits["assembly", SPANS, 0].offset == 0
    assert site.disk.released == set()

    await site.once(400)

    assert {record.trace.trace_id for record in site.traces()} == {
        trace_id(number).hex() for number in (1, 2, 3)
    }
    assert site.disk.commits["assembly", SPANS, 0].offset == 1
    assert site.disk.released == {Position(SPANS, 0, 0)}


async def test_poison_is_named_counted_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    site.disk.append(SPANS, 0, b"", b"\xff\xff\xff", 100)
    site.send(100, root())

    await site.once(106)

    assert len(site.traces()) == 1
    assert site.count("poison_records_total", topic="spans") == 1
    assert "`spans`, partition 0, offset 0" in caplog.text
    assert site.disk.commits["assembly", SPANS, 0].offset == 2


async def test_a_trace_that_no_worker_can_read_is_marked_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = Site()
    site.workers.poison = {trace_id(1)}
    site.send(100, root(trace=1))
    site.send(100, root(trace=2))
    await site.once(106)
    site.send(110, child(2, trace=1))

    await site.once(500)

    assert [record.trace.trace_id for record in site.traces()] == [trace_id(2).hex()]
    assert [mark.traces_offset for mark in site.marks()] == [-1, 0]
    assert site.count("poison_records_total", topic="spans") == 1
    assert "partition 0, from offset 0" in caplog.text
    assert site.disk.commits["assembly", SPANS, 0].offset == 3


async def test_a_record_too_large_for_the_log_takes_nobody_with_it() -> None:
    site = Site()
    site.send(100, root(trace=1))
    site.send(100, *(child(number, trace=2) for number in range(2, 200)), root(trace=2))
    site.log.max_record = 4000
    async with site.running():
        site.now.time = 106
        await site.until(lambda: len(site.marks()) == 2)

    assert [record.trace.trace_id for record in site.traces()] == [trace_id(1).hex()]
    assert site.count("poison_records_total", topic="spans") == 1
    assert site.disk.commits["assembly", SPANS, 0].offset == 2


async def test_memory_pressure_closes_the_oldest_of_all_partitions() -> None:
    size = len(request(child(2)))
    site = Site(disk=Disk(partitions=2), windows=Windows(trace=WINDOWS.trace, memory=2 * size))
    site.send(100, child(2, trace=2), partition=1)
    site.send(101, child(2, trace=1), partition=0)
    site.send(102, child(2, trace=3), partition=1)

    await site.once(103)

    (record,) = site.traces()
    assert record.trace.closed == "memory"
    assert site.count("buffer_limit_bytes") == 2 * size


async def test_a_log_that_cannot_be_written_to_is_waited_for() -> None:
    site = Site()
    site.send(100, root())
    async with site.running():
        site.log.failures = unavailable(7)
        site.now.time = 106
        await site.until(lambda: bool(site.traces()))

    assert len(site.traces()) == 1
    assert site.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]


async def test_workers_that_fail_are_asked_again() -> None:
    site = Site()
    site.workers.failures = [BrokenPipeError(), RuntimeError("died")]
    site.send(100, root())

    await site.once(106)
    await site.once(106)

    assert len(site.traces()) == 1


async def test_stopping_does_not_wait_for_ever_for_a_dead_log() -> None:
    site = Site()
    site.send(100, root())
    async with site.running():
        await site.polled()
        site.log.failures = unavailable(10_000)
        site.now.time = 106
        await site.polled()
    assert site.traces() == []

    await site.once(107)

    assert len(site.traces()) == 1


async def test_reading_stops_while_too_much_is_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.assembly.closer.IN_FLIGHT_TRACES", 5)
    site = Site()
    site.workers.gate = asyncio.Event()
    for trace in range(1, 11):
        site.send(100, root(trace=trace))
    async with site.running():
        site.now.time = 106
        await site.until(lambda: len(site.workers.jobs) >= 5)
        polls = site.log.readers[-1].polls
        for _ in range(50):
            await asyncio.sleep(0)
        assert site.log.readers[-1].polls == polls
        site.workers.gate.set()
        await site.until(lambda: len(site.traces()) == 10)


async def test_marks_are_bounded_and_evictions_counted() -> None:
    site = Site(max_marks=10)
    for trace in range(1, 31):
        site.send(100 + trace, root(trace=trace))

    await site.once(200)
    await site.once(201)

    assert len(site.traces()) == 30
    assert site.count("marks_evicted_total") >= 20


async def test_marks_that_rereads_need_are_not_evicted_the_old_trace_closes_instead() -> None:
    site = Site(max_marks=10)
    site.send(100, child(2, trace=99))
    for trace in range(1, 31):
        site.send(100 + trace, root(trace=trace))

    await site.once(200)
    await site.once(201)

    assert len(site.traces()) == 31
    assert site.count("traces_closed_total", service="shop", reason="memory") == 1


async def test_a_drain_at_the_end_writes_in_the_order_of_start() -> None:
    site = Site(disk=Disk(partitions=3))
    for trace, start in enumerate([50, 10, 30, 10, 20], 1):
        parent = 7 if trace == 3 else 0
        site.send(100, Made(trace=trace, span=1, parent=parent, start=start), partition=trace % 3)

    await site.drained("end")

    assert [job.trace_id[-1] for job in site.workers.jobs] == [2, 4, 5, 3, 1]
    closed = {int(each.trace.trace_id, 16): each.trace.closed for each in site.traces()}
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
    assert site.disk.commits["assembly", SPANS, 0].offset == 2


async def test_a_partition_that_comes_back_goes_on_with_its_buffer() -> None:
    site = Site(disk=Disk(partitions=2))
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
        assert site.log.replays == [0, 1], "its marks are not read again"
        site.now.time = 106
        await site.until(lambda: bool(site.traces()))

    (record,) = site.traces()
    assert record.trace.spans == 2
    assert site.count("spans_ignored_total", reason="duplicate") == 0


async def test_a_partition_that_was_somebody_elses_is_read_afresh() -> None:
    site = Site(disk=Disk(partitions=1))
    site.send(100, root())
    async with site.running():
        await site.polled()
        site.log.readers[-1].revoke(0)
        await site.polled(2)
        other = Site(disk=site.disk, now=site.now)
        await other.once(106)
        assert len(site.traces()) == 1
        site.log.readers[-1].assign(0)
        await site.polled(4)

    assert len(site.traces()) == 1


async def test_nothing_is_left_when_everything_is_written() -> None:
    site = Site()
    for trace in range(1, 50):
        site.send(100, root(trace=trace), child(2, trace=trace + 100))
    async with site.running() as assembler:
        site.now.time = 500
        await site.until(lambda: len(site.traces()) == 98)
        await site.polled()

    closer = assembler._closer
    assert not closer._pending
    assert not closer._finished
    assert (closer._in_flight, closer._bytes) == (0, 0)
    assert all(len(buffer) == 0 and buffer.is_idle for buffer in assembler._kept.values())
    assert len(site.disk.released) == 49


async def test_a_drain_that_cannot_write_says_so() -> None:
    site = Site()
    site.send(100, root())
    site.reopen()
    site.log.failures = unavailable(100)

    with pytest.raises(LogUnavailable):
        await site.assembler().drain("end")

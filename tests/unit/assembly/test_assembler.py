"""The shell of assembly: what it reads, waits for and writes."""

import asyncio

import pytest

from collector.assembly.open_trace import PIECE_COST, SPAN_COST, TRACE_COST
from collector.assembly.service_queues import SERVICE_COST
from collector.config.tree import Windows
from collector.log.port import SPANS, TRACES, Position
from collector.records.sessions import session_key
from evaluators.digest import trace_digest
from tests.support.assembling import WINDOWS, Site
from tests.support.faulty_log import unavailable
from tests.support.spans import Made, child, request, root, span_id, trace_id
from tests.support.table import for_each


async def test_a_closed_trace_is_written_marked_and_committed() -> None:
    site = Site()
    site.send(100, child(2), root(session="s"))

    await site.once(106)

    (record,) = site.traces()
    assert record.trace.digest == trace_digest([span_id(1).hex(), span_id(2).hex()])
    assert (record.trace.closed, record.revision, record.seen) == ("root_ended", 0, 100)
    assert record.spans == (request(child(2), root(session="s")),)
    (mark,) = site.marks()
    assert (mark.last_offset, mark.closed_at, mark.session_key) == (
        0,
        106,
        session_key("shop", "s"),
    )
    (stored,) = site.log.history(TRACES)
    assert stored.position == Position(TRACES, mark.traces_partition, mark.traces_offset)
    assert stored.key == mark.session_key
    assert site.log.committed("assembly", SPANS, 0).offset == 1
    assert site.log.released == {Position(SPANS, 0, 0)}
    assert site.count("traces_closed_total", service="shop", reason="root_ended") == 1
    assert site.count("traces_active") == 0
    assert site.count("buffer_bytes") == 0


async def test_it_is_at_rest_while_no_trace_is_open_or_waits_for_its_commit() -> None:
    site = Site()
    async with site.running() as assembler:
        await site.polled()
        assert assembler.is_at_rest
        site.send(100, root())
        await site.polled()
        assert not assembler.is_at_rest
        site.clock.now = 106
        await site.until(lambda: assembler.is_at_rest)

    assert site.log.committed("assembly", SPANS, 0).offset == 1


async def test_the_idle_tick_spares_a_reader_that_is_not_at_the_end() -> None:
    site = Site()
    site.send(100, root())
    site.send(101, child(2))
    async with site.running():
        site.log.readers[-1].lag = 1
        site.clock.now = 500
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


@pytest.mark.parametrize("at", [200, 1_000, 1_000_000])
async def test_a_late_score_of_its_trace_makes_no_revision_and_no_second_trace(at: float) -> None:
    site = Site()
    site.send(100, root(), Made(span=2, parent=1, score="in time"))
    await site.once(106)
    site.send(at, Made(span=3, parent=1, score="tone"), child(4, parent=3), child(5, parent=4))

    await site.once(at + 100)

    (record,) = site.traces()
    assert record.trace.spans == 2
    assert site.count("late_spans_total", service="shop", action="score") == 3
    assert site.log.committed("assembly", SPANS, 0).offset == 2


async def test_a_late_span_beside_a_late_score_makes_a_revision_without_the_score() -> None:
    site = Site()
    site.send(100, root())
    await site.once(106)
    site.send(200, child(2), Made(span=3, parent=1, score="tone"))
    site.send(201, Made(span=4, parent=1, score="tone"))

    await site.once(300)

    second = site.traces()[-1]
    assert (second.revision, second.spans[1:]) == (1, (request(child(2)),))
    assert site.count("late_spans_total", service="shop", action="score") == 2


NO_REVISION: dict[str, tuple[dict[str, int], float, list[Made], str]] = {
    "copies": ({}, 200, [child(2)], "duplicate"),
    "too late": ({}, 707, [child(3)], "ignored"),
    "too many revisions": ({"max_revisions": 0}, 200, [child(3)], "ignored"),
    "the trace has expired": ({}, 200, [child(3)], "ignored"),
    "the trace is as large as one may be": ({"max_spans": 2}, 200, [child(3)], "ignored"),
}
"""The windows that differ, when late spans come, which, and what is done with them."""


@for_each("case", NO_REVISION)
async def test_late_spans_that_make_no_revision(case: str) -> None:
    window, at, late, action = NO_REVISION[case]
    site = Site(windows=Windows(trace=WINDOWS.trace.model_copy(update=window)))
    site.send(100, child(2), root())
    await site.once(106)
    if case == "the trace has expired":
        for record in site.log.stored(TRACES):
            site.log.expire(record.position)
    site.send(at, *late)

    await site.once(1000)

    assert len(site.traces()) == len(site.marks()) == 1
    assert site.count("late_spans_total", service="shop", action=action) == 1
    assert site.log.committed("assembly", SPANS, 0).offset == 2


async def test_a_revised_trace_stays_in_its_session() -> None:
    site = Site()
    site.send(100, child(2))
    await site.once(400)
    site.send(500, root(session="other"))

    await site.once(506)

    first, second = site.traces()
    assert first.trace.session_id == second.trace.session_id == first.trace.trace_id
    assert second.trace.session_source == "trace"
    keys = {record.key for record in site.log.history(TRACES)}
    assert keys == {session_key("shop", first.trace.trace_id)}
    assert site.count("late_spans_total", service="shop", action="session_changed") == 1


async def test_a_late_span_of_a_trace_in_flight_makes_a_revision() -> None:
    """It waits until its trace is written, while other traces of the service are read."""
    site = Site()
    site.workers.gate = asyncio.Event()
    site.send(100, root())
    async with site.running():
        site.clock.now = 106
        await site.until(lambda: bool(site.workers.jobs))
        site.send(107, child(2), root(trace=2))
        await site.polled()
        site.clock.now = 113
        await site.polled()
        assert site.traces() == []
        site.workers.gate.set()
        await site.until(lambda: len(site.traces()) == 3)

    records = [each for each in site.traces() if each.trace.trace_id == trace_id(1).hex()]
    assert [(each.revision, each.trace.spans) for each in records] == [(0, 1), (1, 2)]


async def test_poison_is_named_counted_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    site.log.append(SPANS, b"\xff\xff\xff")
    site.send(100, root())

    await site.once(106)

    assert len(site.traces()) == 1
    assert site.count("poison_records_total", topic="spans") == 1
    assert "`spans`, partition 0, offset 0" in caplog.text
    assert site.log.committed("assembly", SPANS, 0).offset == 2


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
    assert "partition 0, offset 0, can never be processed" in caplog.text
    assert site.log.committed("assembly", SPANS, 0).offset == 3


async def test_a_record_too_large_for_the_log_is_written_without_its_spans() -> None:
    site = Site()
    site.send(100, *(child(number) for number in range(2, 200)), root())
    site.log.largest = {TRACES: 4000}
    async with site.running():
        site.clock.now = 106
        await site.until(lambda: bool(site.marks()))
    site.send(107, child(300))

    await site.once(120)

    (record,) = site.traces()
    assert (record.spans, record.trace.spans) == ((), 199)
    assert record.trace.truncated
    assert site.count("trace_gaps_total", service="shop", gap="truncated") == 1
    assert site.count("late_spans_total", service="shop", action="ignored") == 1


async def test_a_record_too_large_for_the_log_loses_nothing_else() -> None:
    site = Site()
    site.send(100, root(trace=1))
    site.send(100, root(trace=2, session="s" * 5000))
    site.log.largest = {TRACES: 4000}
    async with site.running() as assembler:
        site.clock.now = 106
        await site.until(lambda: len(site.marks()) == 2)

    assert assembler._pipeline._unwritten == 0
    assert [record.trace.trace_id for record in site.traces()] == [trace_id(1).hex()]
    assert site.count("poison_records_total", topic="spans") == 1
    assert site.log.committed("assembly", SPANS, 0).offset == 2


async def test_memory_pressure_closes_the_oldest_of_all_partitions() -> None:
    size = len(request(child(2))) + TRACE_COST + PIECE_COST + SPAN_COST
    limit = 2 * (size + SERVICE_COST)
    site = Site(partitions=2, windows=Windows(trace=WINDOWS.trace, memory=limit))
    site.send(100, child(2, trace=2), partition=1)
    site.send(101, child(2, trace=1), partition=0)
    site.send(102, child(2, trace=3), partition=1)

    await site.once(103)

    (record,) = site.traces()
    assert (record.trace.trace_id, record.trace.closed) == (trace_id(2).hex(), "memory")
    assert site.count("buffer_limit_bytes") == limit


async def test_a_log_that_cannot_be_written_to_is_waited_for() -> None:
    site = Site()
    site.send(100, root())
    async with site.running():
        site.log.write_failures = unavailable(7)
        site.clock.now = 106
        await site.until(lambda: bool(site.traces()))

    assert len(site.traces()) == 1
    assert site.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]

"""On a log that reads parts of records, a trace holds where its spans stand, and its record names them."""

import asyncio

from collector.assembly.open_trace import REF_COST
from collector.log.port import SPANS, Position
from collector.records.span_refs import SpanRef
from tests.support.assembling import Site, newest
from tests.support.open_traces_driver import OpenTracesDriver
from tests.support.spans import Made, child, request, root, span_id, trace_id

LARGE = "x" * 50_000


async def test_a_record_names_the_spans_that_the_log_holds() -> None:
    site = Site(by_ref=True)
    site.send(100, root(), child(2))
    site.send(101, child(3))
    await site.once(200)

    (record,) = site.traces()
    first, second = request(root(), child(2)), request(child(3))
    assert record.spans == (SpanRef(0, 0, 0, len(first)), SpanRef(0, 1, 0, len(second)))
    assert site.with_spans(record).spans == (first, second)
    assert record.trace.spans == 3
    assert site.log.released == {Position(SPANS, 0, 0), Position(SPANS, 0, 1)}
    assert len(site.log.stored(SPANS)) == 2


async def test_late_spans_are_ignored_once_spans_of_the_record_have_expired() -> None:
    site = Site(by_ref=True)
    site.send(100, root(), child(2))
    await site.once(110)
    site.log.expire(Position(SPANS, 0, 0))
    site.send(120, child(3))
    await site.once(200)

    assert [each.revision for each in site.traces()] == [0]
    assert site.count("late_spans_total", service="shop", action="ignored") == 1


async def test_a_piece_that_the_log_has_lost_is_left_out() -> None:
    site = Site(by_ref=True)
    site.send(100, root())
    site.send(101, child(2))
    site.log.restart()
    async with site.running():
        await site.polled()
        site.log.expire(Position(SPANS, 0, 1))
        site.clock.now = 200
        await site.polled(5)

    (record,) = site.traces()
    assert record.trace.spans == 1


async def test_a_trace_of_which_nothing_is_left_is_passed_over() -> None:
    site = Site(by_ref=True)
    site.send(100, root())
    site.log.restart()
    async with site.running():
        await site.polled()
        site.log.expire(Position(SPANS, 0, 0))
        site.clock.now = 200
        await site.polled(5)

    assert site.traces() == []
    assert len(site.marks()) == 1
    assert site.count("poison_records_total", topic=SPANS) == 1


def test_memory_holds_no_bytes_of_spans_but_of_those_that_were_cut() -> None:
    driver = OpenTracesDriver(by_ref=True)
    driver.send(100, Made(span=1, parent=9, text=LARGE), Made(span=2, parent=9, text=LARGE))
    (trace,) = driver.open_traces.open
    assert trace.size > 2 * len(LARGE)
    assert trace.held == REF_COST
    assert driver.open_traces.size < 5_000

    driver.send(101, Made(span=2, parent=9), Made(span=3, parent=9, text=LARGE))
    assert trace.ids == {span_id(n) for n in (1, 2, 3)}
    assert REF_COST + len(LARGE) < trace.held < REF_COST + len(LARGE) + 500


def test_a_trace_above_max_bytes_closes_by_the_bytes_of_its_spans() -> None:
    closed = {
        by_ref: [
            (closing.reason, closing.size, closing.spans)
            for number in range(1, 8)
            for closing in OpenTracesDriver(by_ref=by_ref)
            .send(100, *(Made(span=n, parent=9, text=LARGE * 100) for n in range(1, number + 1)))
            .closings
        ]
        for by_ref in (False, True)
    }

    assert closed[True] == closed[False] != []


async def test_a_revision_is_whole_though_old_spans_expire_while_a_worker_is_waited_for() -> None:
    site = Site(by_ref=True)
    site.send(100, root(), child(2))
    await site.once(110)
    site.send(120, child(3))
    site.workers.gate = asyncio.Event()
    site.workers.jobs.clear()
    site.clock.now = 200
    site.log.restart()
    async with site.running():
        await site.until(lambda: bool(site.workers.jobs))
        site.log.expire(Position(SPANS, 0, 0))
        site.workers.gate.set()
        await site.polled(5)

    assert newest(site.traces())[trace_id(1).hex()].trace.spans == 3

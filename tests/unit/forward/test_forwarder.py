"""Forwarding reads the log in order, from its commit; an outage loses nothing, and what comes back is known again."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collector.base.errors import Retryable
from collector.base.telemetry import Telemetry
from collector.forward.forwarder import GROUP, KEPT, Forwarded, Forwarder
from collector.log.disk.disk_log import DiskLog
from collector.log.memory import MemoryLog
from collector.log.port import SPANS, New, Position
from collector.otlp.sent_form import unread_record
from tests.support.clocks import eventually
from tests.support.forwarding import FakeTransport, ForwardStand, forwarded_spans
from tests.support.otlp import body, span


class Stand(ForwardStand):
    def __init__(self, answers: Sequence[Exception] = ()) -> None:
        self.now = 1000.0
        log = MemoryLog(clock=lambda: self.now, keeps_spans=True)
        super().__init__(log, FakeTransport([*answers]))

    async def write(self, *values: bytes) -> list[Position]:
        new = [New(topic=SPANS, key=b"k", value=value) for value in values]
        return [*await self.log.write(new)]

    def running(
        self, *, drains: bool = False, keeps: bool = False
    ) -> AbstractAsyncContextManager[None]:
        make = partial(Forwarder, clock=lambda: self.now, unread_only=keeps)
        return self.reading(make, drains=drains)

    @property
    def committed(self) -> int | None:
        return self.log.committed(GROUP, SPANS, 0).offset

    async def until(self, committed: int) -> None:
        await eventually(lambda: self.committed == committed)


async def test_everything_arrives_once_and_in_order_over_restarts() -> None:
    it = Stand()
    for run in range(3):
        async with it.running():
            for at in range(1, 6):
                await it.write(body(span(run + 1, 10 * run + at)))
            await it.until(5 * (run + 1))

    assert forwarded_spans(it.spans) == [10 * run + at for run in range(3) for at in range(1, 6)]
    assert it.spans.closed


async def test_a_log_that_no_one_has_forwarded_from_is_not_sent_from_its_beginning() -> None:
    it = Stand()
    await it.write(*(body(span(1, at)) for at in range(1, 400)))
    async with it.running():
        assert it.committed == 399
        await it.write(body(span(1, 400)))
        await it.until(400)

    assert forwarded_spans(it.spans) == [400]


async def test_an_outage_delays_the_commit_and_loses_nothing() -> None:
    it = Stand([Retryable("away")] * 1_000_000)
    async with it.running():
        await it.write(*(body(span(1, at)) for at in range(1, 20)))
        await eventually(lambda: it.count("retried") > 3)
        assert it.committed == 0
    assert it.committed == 0, "a stop does not commit what the backend has not got"
    it.spans.answers.clear()
    async with it.running():
        await it.until(19)

    assert forwarded_spans(it.spans) == list(range(1, 20))


async def test_what_waits_when_keep_is_set_is_sent_whole_and_nothing_behind_it() -> None:
    it = Stand()
    for at, keeps in enumerate((True, True, False, False, True, True)):
        await it.write(body(span(1, at)))  # read by the next one
        it.spans.answers = [Retryable("away")]
        async with it.running(keeps=keeps):
            await it.until(at + 1)

    assert forwarded_spans(it.spans) == [2, 3, 4]


async def test_what_comes_as_keep_begins_to_read_did_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = Stand()
    find_end = it.log.end

    async def busy(topic: str, partition: int) -> int:
        end = await find_end(topic, partition)
        await it.write(body(span(1, 1)))  # between any two looks
        return end

    monkeypatch.setattr(it.log, "end", busy)
    async with it.running(keeps=True):
        await eventually(lambda: (it.committed or 0) > 0)

    assert forwarded_spans(it.spans) == []


async def test_spans_that_no_trace_needs_any_more_wait_for_the_backend() -> None:
    it = Stand()
    async with it.running():
        pass
    positions = await it.write(body(span()))
    it.log.release(positions)
    async with it.running():
        await it.until(1)

    assert forwarded_spans(it.spans) == [1]


async def test_of_what_waits_the_oldest_goes_when_the_share_is_full_counted_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    it = Stand([Retryable("away")])
    it.log = await DiskLog.open(
        tmp_path / "log",
        max_size=16 << 20,
        clock=lambda: it.now,
        telemetry=Telemetry(),
        groups={SPANS: frozenset({"assembly"})},
    )
    async with it.running():
        pass
    sent = 200
    for at in range(1, sent + 1):
        positions = await it.write(body(span(1, at, text="x" * 100_000)))
        it.log.release(positions)  # assembly is done with it
    async with it.running():
        await it.until(sent)

    arrived = forwarded_spans(it.spans)
    assert arrived == list(range(sent + 1 - len(arrived), sent + 1))
    assert 0 < len(arrived) < sent
    assert it.count("expired") == sent - len(arrived)
    assert caplog.text.count("The log dropped what the backend did not have yet") == 1
    await it.log.close()


async def test_a_log_that_ends_with_the_process_is_forwarded_before_a_stop() -> None:
    it = Stand()
    async with it.running(drains=True):
        await it.write(*(body(span(1, at)) for at in range(1, 20)))

    assert forwarded_spans(it.spans) == list(range(1, 20))


async def test_what_comes_back_is_not_forwarded_again(caplog: pytest.LogCaptureFixture) -> None:
    first, second, news = (span(1, at) for at in (1, 2, 3))
    it = Stand()
    async with it.running():
        await it.write(body(first), body(second))
        await it.until(2)
        await it.write(body(second, first))  # a Collector batches
        await eventually(lambda: it.count("returned") == 1)
        await it.write(body(first, news, second))
        await it.until(4)

    assert forwarded_spans(it.spans) == [1, 2, 3]
    assert it.count("returned") == 2
    assert caplog.text.count("comes back to this receiver") == 1


async def fails_once(it: Stand) -> None:
    async with it.running():
        await it.write(body(span()))
        await eventually(lambda: it.spans.tries == 1)


async def test_what_is_read_again_after_a_failure_has_not_come_back() -> None:
    it = Stand([RuntimeError("a bug")])
    with pytest.raises(RuntimeError):
        await fails_once(it)
    async with it.running():
        await it.until(1)

    assert forwarded_spans(it.spans) == [1]


async def test_records_without_a_time_are_never_the_same() -> None:
    made = ExportLogsServiceRequest()
    record = made.resource_logs.add().scope_logs.add().log_records.add(event_name="retrying")
    it = Stand()
    async with it.running():
        await it.write(*[unread_record(made.SerializeToString())] * 2)
        record.time_unix_nano = 1
        await it.write(*[unread_record(made.SerializeToString())] * 2)
        await it.until(4)

    assert len(it.records.records()) == 3
    assert it.count("returned") == 1


def test_what_comes_back_is_known_while_the_log_is_read_late() -> None:
    now = 1000.0
    lately = Forwarded(lambda: now, room=1000)
    for at in range(100):  # an hour's backlog is sent within 100 s, while some of it comes back
        now = 1000.0 + at
        assert not lately.again([at], written=at * 36.0 - 2600)

    assert lately.again([99], written=1099.5) == {0}


def test_after_a_while_the_same_item_is_news() -> None:
    now = 0.0
    lately = Forwarded(lambda: now)
    for minute in range(3):
        now = minute * 2 * KEPT
        assert not lately.again([1], written=now)


def test_what_is_remembered_is_bounded() -> None:
    lately = Forwarded(lambda: 0.0, room=10)

    lately.again(range(1000), 0.0)

    assert lately.again(range(980, 1000), 0.0) == set(range(20))
    assert not lately.again(range(900), 0.0)

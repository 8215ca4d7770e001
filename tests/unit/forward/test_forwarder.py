"""Forwarding reads the log: in order, from its commit; an outage of the backend loses nothing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collector.base.errors import Retryable
from collector.base.retry import Backoff
from collector.base.telemetry import Telemetry
from collector.forward.backend import Backend, Backends
from collector.forward.families import ForwardFamilies
from collector.forward.forwarder import GROUP, Forwarder
from collector.forward.reader import Way
from collector.log.disk.disk_log import DiskLog
from collector.log.memory import MemoryLog
from collector.log.port import SPANS, New
from collector.otlp.sent_form import unread_record
from collector.records.otlp_signals import LOGS, TRACES
from tests.support.eventually import eventually
from tests.support.forwarding import FakeTransport, forwarded_spans
from tests.support.otlp import body, span


@dataclass
class Stand:
    """A log and a backend that outlive the forwarders over them."""

    spans: FakeTransport = field(default_factory=FakeTransport)
    records: FakeTransport = field(default_factory=FakeTransport)
    telemetry: Telemetry = field(default_factory=Telemetry)
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.log: MemoryLog | DiskLog = MemoryLog(clock=lambda: self.now, keeps_spans=True)

    async def write(self, *values: bytes) -> None:
        await self.log.write([New(topic=SPANS, key=b"k", value=value) for value in values])

    @asynccontextmanager
    async def running(
        self, *, drains: bool = False, keeps: bool = False
    ) -> AsyncGenerator[Forwarder]:
        families, begun, stopping = (
            ForwardFamilies(self.telemetry),
            asyncio.Event(),
            asyncio.Event(),
        )
        backoff = Backoff(first=0.001, longest=0.001)
        way = Way(
            log=self.log,
            backends=Backends(
                Backend(self.spans, TRACES, families=families, backoff=backoff),
                Backend(self.records, LOGS, families=families, backoff=backoff),
            ),
            telemetry=self.telemetry,
            has_begun=begun,
            drains=drains,
        )
        forwarder = Forwarder(way, clock=lambda: self.now, unread_only=keeps)
        run = asyncio.create_task(forwarder.run(stopping))
        try:
            await begun.wait()
            yield forwarder
        finally:
            stopping.set()
            await run

    def count(self, result: str) -> float:
        labels = {"result": result}
        name = "spanwise_forward_requests_total"
        return self.telemetry.registry.get_sample_value(name, labels) or 0.0

    @property
    def committed(self) -> int | None:
        return self.log.committed(GROUP, SPANS, 0).offset


async def test_everything_arrives_once_and_in_order_over_restarts() -> None:
    it = Stand()
    for run in range(3):
        async with it.running():
            for at in range(1, 6):
                await it.write(body(span(run + 1, 10 * run + at)))
            await eventually(lambda run=run: it.committed == 5 * (run + 1))

    assert forwarded_spans(it.spans) == [10 * run + at for run in range(3) for at in range(1, 6)]
    assert it.spans.closed


async def test_a_log_that_no_one_has_forwarded_from_is_not_sent_from_its_beginning() -> None:
    it = Stand()
    await it.write(*(body(span(1, at)) for at in range(1, 400)))
    async with it.running():
        assert it.committed == 399
        await it.write(body(span(1, 400)))
        await eventually(lambda: it.committed == 400)

    assert forwarded_spans(it.spans) == [400]


async def test_what_comes_while_no_one_forwards_is_sent_afterwards() -> None:
    it = Stand()
    async with it.running():
        pass
    await it.write(body(span(1, 1)))
    async with it.running():
        await eventually(lambda: it.committed == 1)

    assert forwarded_spans(it.spans) == [1]


async def test_an_outage_delays_the_commit_and_loses_nothing() -> None:
    it = Stand(spans=FakeTransport(answers=[Retryable("away")] * 1_000_000))
    async with it.running():
        await it.write(*(body(span(1, at)) for at in range(1, 20)))
        await eventually(lambda: it.count("retried") > 3)
        assert it.committed == 0
    assert it.committed == 0, "a stop does not commit what the backend has not got"
    it.spans.answers.clear()
    async with it.running():
        await eventually(lambda: it.committed == 19)

    assert forwarded_spans(it.spans) == list(range(1, 20))


async def test_what_waits_when_keep_is_set_is_sent_whole_and_nothing_behind_it() -> None:
    it = Stand()
    for at, keeps in enumerate((True, True, False, False, True, True)):
        await it.write(body(span(1, at)))  # read by the next one
        it.spans.answers = [Retryable("away")]
        async with it.running(keeps=keeps):
            await eventually(lambda at=at: it.committed == at + 1)

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
    positions = await it.log.write([New(topic=SPANS, key=b"k", value=body(span()))])
    it.log.release(positions)
    async with it.running():
        await eventually(lambda: it.committed == 1)

    assert forwarded_spans(it.spans) == [1]


async def test_of_what_waits_the_oldest_goes_when_the_share_is_full_counted_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    it = Stand(FakeTransport(answers=[Retryable("away")]))
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
        positions = await it.log.write(
            [New(topic=SPANS, key=b"k", value=body(span(1, at, text="x" * 100_000)))]
        )
        it.log.release(positions)  # assembly is done with it
    async with it.running():
        await eventually(lambda: it.committed == sent)

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


async def test_records_that_nothing_here_reads_go_where_records_go() -> None:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(event_name="of no agent")
    it = Stand()
    async with it.running():
        await it.write(unread_record(request.SerializeToString()))
        await eventually(lambda: it.committed == 1)

    assert it.spans.taken == []
    assert it.records.taken == [request.SerializeToString()]


async def test_what_comes_back_is_not_forwarded_again(caplog: pytest.LogCaptureFixture) -> None:
    first, second, news = (span(1, at) for at in (1, 2, 3))
    it = Stand()
    async with it.running():
        await it.write(body(first), body(second))
        await eventually(lambda: it.committed == 2)
        await it.write(body(second, first))  # a Collector batches
        await eventually(lambda: it.count("returned") == 1)
        await it.write(body(first, news, second))
        await eventually(lambda: it.committed == 4)

    assert forwarded_spans(it.spans) == [1, 2, 3]
    assert it.count("returned") == 2
    assert caplog.text.count("comes back to this receiver") == 1


async def fails_once(it: Stand) -> None:
    async with it.running():
        await it.write(body(span()))
        await eventually(lambda: it.spans.tries == 1)


async def test_what_is_read_again_after_a_failure_has_not_come_back() -> None:
    it = Stand(spans=FakeTransport(answers=[RuntimeError("a bug")]))
    with pytest.raises(RuntimeError):
        await fails_once(it)
    async with it.running():
        await eventually(lambda: it.committed == 1)

    assert forwarded_spans(it.spans) == [1]


async def test_records_without_a_time_are_never_the_same() -> None:
    made = ExportLogsServiceRequest()
    record = made.resource_logs.add().scope_logs.add().log_records.add(event_name="retrying")
    it = Stand()
    async with it.running():
        await it.write(*[unread_record(made.SerializeToString())] * 2)
        record.time_unix_nano = 1
        await it.write(*[unread_record(made.SerializeToString())] * 2)
        await eventually(lambda: it.committed == 4)

    assert len(it.records.records()) == 3
    assert it.count("returned") == 1

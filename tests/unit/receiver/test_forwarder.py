"""The forwarder: bounded, patient, and honest about what it dropped."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.errors import ConfigError, Permanent, Retryable, TooLarge
from collector.base.net import is_loopback
from collector.base.telemetry import Telemetry
from collector.config.crosscheck import crosscheck
from collector.config.tree import Config, OtlpTarget
from collector.otlp.signal import OtlpSignal
from collector.receiver.families import ReceiverFamilies
from collector.receiver.forward import (
    KEPT,
    PATIENCE,
    RESULTS,
    SENDERS,
    Forwarded,
    Forwarder,
    forwarders,
)
from collector.records.otlp_signals import LOGS, OTLP_SIGNALS, TRACES
from tests.support.eventually import eventually
from tests.support.otlp import body, span


@dataclass
class FakeTransport:
    """A backend that answers as set; `gate` holds every call until it is set, `limit` is the largest it takes."""

    answers: list[Exception | tuple[int, str]] = field(
        default_factory=list[Exception | tuple[int, str]]
    )
    gate: asyncio.Event | None = None
    limit: int = 1 << 30
    busy_with: bytes = b""
    """Requests that hold this are asked to come back."""
    taken: list[bytes] = field(default_factory=list[bytes])
    closed: bool = False

    async def export(self, request: bytes) -> tuple[int, str]:
        if self.gate is not None:
            await self.gate.wait()
        if len(request) > self.limit:
            raise TooLarge("RESOURCE_EXHAUSTED: larger than max")
        if self.busy_with and self.busy_with in request:
            raise Retryable("UNAVAILABLE: not this one")
        answer = self.answers.pop(0) if self.answers else (0, "")
        if isinstance(answer, Exception):
            raise answer
        self.taken.append(request)
        return answer

    async def close(self) -> None:
        self.closed = True


@dataclass
class Running:
    forward: Forwarder
    transport: FakeTransport
    telemetry: Telemetry
    stopping: asyncio.Event
    now: list[float]

    def count(self, result: str) -> float:
        found = self.telemetry.registry.get_sample_value(
            "spanwise_forward_requests_total", {"result": result}
        )
        return found or 0.0

    @property
    def queued(self) -> float:
        found = self.telemetry.registry.get_sample_value("spanwise_forward_queue_bytes")
        return -1 if found is None else found


@asynccontextmanager
async def running(
    transport: FakeTransport,
    *,
    limit: int = 1000,
    grace: float = 60.0,
    longest_wait: float = 0.001,
    signal: OtlpSignal = TRACES,
) -> AsyncGenerator[Running]:
    telemetry, stopping, now = Telemetry(), asyncio.Event(), [0.0]
    forward = Forwarder(
        transport,
        signal,
        families=ReceiverFamilies(telemetry),
        clock=lambda: now[0],
        limit=limit,
        longest_wait=longest_wait,
        grace=grace,
    )
    run = asyncio.create_task(forward.run(stopping))
    try:
        yield Running(forward, transport, telemetry, stopping, now)
    finally:
        stopping.set()
        await run


def numbers(it: Running) -> list[int]:
    """Of the spans that the backend has."""
    requests = map(ExportTraceServiceRequest.FromString, it.transport.taken)
    return [
        int.from_bytes(each.span_id)
        for request in requests
        for group in request.resource_spans
        for scope in group.scope_spans
        for each in scope.spans
    ]


async def test_every_request_is_passed_on_as_it_came() -> None:
    async with running(FakeTransport()) as it:
        for request in (b"a", b"b", b"c"):
            it.forward(request)
        await eventually(lambda: it.count("forwarded") == 3)

    assert sorted(it.transport.taken) == [b"a", b"b", b"c"]
    assert it.queued == 0
    assert it.transport.closed


async def test_a_backend_that_is_away_is_tried_again_until_it_takes() -> None:
    away: list[Exception | tuple[int, str]] = [Retryable("no"), Retryable("no")]
    async with running(FakeTransport(answers=away)) as it:
        it.forward(b"a")
        await eventually(lambda: it.count("forwarded") == 1)

    assert it.count("retried") == 2
    assert it.transport.taken == [b"a"]


async def test_what_has_no_room_is_dropped_and_counted_and_ingest_never_waits() -> None:
    gate = asyncio.Event()
    async with running(FakeTransport(gate=gate), limit=10) as it:
        for _ in range(5):
            it.forward(b"1234")
        assert (it.queued, it.count("queue_full")) == (8, 3)
        gate.set()
        await eventually(lambda: it.count("forwarded") == 2)
        it.forward(b"1234")
        await eventually(lambda: it.count("forwarded") == 3)

    assert it.queued == 0


async def test_what_is_being_sent_still_counts_against_the_limit() -> None:
    gate = asyncio.Event()
    async with running(FakeTransport(gate=gate), limit=4) as it:
        it.forward(b"1234")
        await asyncio.sleep(0)  # a sender has it now
        it.forward(b"5")
        assert it.count("queue_full") == 1
        gate.set()


async def test_a_request_that_is_refused_for_ever_is_dropped_and_the_next_goes_on() -> None:
    async with running(FakeTransport(answers=[Permanent("bad")])) as it:
        it.forward(b"bad")
        await eventually(lambda: it.count("refused") == 1)
        it.forward(b"good")
        await eventually(lambda: it.count("forwarded") == 1)

    assert it.transport.taken == [b"good"]


async def test_spans_that_the_backend_rejected_are_counted() -> None:
    async with running(FakeTransport(answers=[(2, "too old")])) as it:
        it.forward(b"a")
        await eventually(lambda: it.count("partial") == 1)


async def test_a_request_that_is_never_taken_is_given_up_after_a_while_so_that_others_get_their_turn() -> (
    None
):
    away = FakeTransport(answers=[Retryable("too large") for _ in range(100_000)])
    async with running(away) as it:
        it.forward(b"a")
        await eventually(lambda: it.count("retried") > 0)
        it.now[0] = PATIENCE
        await eventually(lambda: it.count("gave_up") == 1)

    assert it.queued == 0


async def test_a_stop_is_bounded_and_what_was_not_delivered_is_counted() -> None:
    gate = asyncio.Event()
    async with running(FakeTransport(gate=gate), grace=0.05) as it:
        for _ in range(7):
            it.forward(b"x")
        await asyncio.sleep(0)

    it.forward(b"late")
    assert it.count("stopped") == 8
    assert it.queued == 0
    assert it.transport.closed


async def test_a_stop_delivers_what_it_can_within_the_grace() -> None:
    async with running(FakeTransport()) as it:
        for _ in range(7):
            it.forward(b"x")

    assert it.count("forwarded") == 7


async def test_every_result_is_there_from_the_start() -> None:
    async with running(FakeTransport()) as it:
        text = {r: it.count(r) for r in RESULTS}

    assert text == dict.fromkeys(RESULTS, 0.0)


def test_an_endpoint_that_does_not_fit_its_protocol_names_its_setting() -> None:
    target = OtlpTarget.model_validate({"endpoint": "backend:4318", "protocol": "http"})

    with pytest.raises(ConfigError, match=r"^forward\.endpoint: "):
        forwarders(target, OTLP_SIGNALS, families=ReceiverFamilies(Telemetry()), clock=lambda: 0.0)


async def test_what_is_too_large_goes_as_halves_and_only_what_is_still_too_large_is_lost() -> None:
    spans = [span(1, at, text="x" * 20) for at in range(1, 8)]
    huge = span(1, 9, text="x" * 500)
    async with running(FakeTransport(limit=300), limit=100_000) as it:
        it.forward(body(*spans[:3], huge, *spans[3:]))
        await eventually(lambda: it.count("refused") == 1 and it.queued == 0)

    assert sorted(numbers(it)) == list(range(1, 8))
    assert it.count("halved") > 0
    assert it.count("retried") == 0


async def test_a_request_that_waits_gives_its_place_to_the_next() -> None:
    async with running(FakeTransport(busy_with=b"never"), limit=10_000) as it:
        for _ in range(2 * SENDERS):
            it.forward(b"never")
        for _ in range(5):
            it.forward(b"small")
        await eventually(lambda: it.count("forwarded") == 5)
        assert it.queued == 2 * SENDERS * len(b"never")
        it.transport.busy_with = b""
        await eventually(lambda: it.queued == 0)

    assert it.count("forwarded") == 5 + 2 * SENDERS


async def test_a_stop_tries_once_more_what_was_set_aside() -> None:
    transport = FakeTransport(busy_with=b"later")
    async with running(transport, longest_wait=1000.0) as it:
        it.forward(b"later")
        await eventually(lambda: it.count("retried") == 1)
        transport.busy_with = b""

    assert it.count("forwarded") == 1


async def test_what_comes_back_is_not_forwarded_again(caplog: pytest.LogCaptureFixture) -> None:
    first, second, news = (span(1, at) for at in (1, 2, 3))
    async with running(FakeTransport(), limit=100_000) as it:
        it.forward(body(first))
        it.forward(body(second))
        await eventually(lambda: it.count("forwarded") == 2)
        it.forward(body(second, first))  # a Collector batches
        await eventually(lambda: it.count("returned") == 1)
        it.forward(body(first, news, second))
        await eventually(lambda: it.count("forwarded") == 3)

    assert numbers(it)[2:] == [3]
    assert it.count("returned") == 2
    assert it.queued == 0
    assert caplog.text.count("comes back to this receiver") == 1


async def test_after_a_while_the_same_span_is_news_again() -> None:
    async with running(FakeTransport(), limit=100_000) as it:
        for minute in range(3):
            it.now[0] = minute * 2 * KEPT
            it.forward(body(span(1, 1)))
            await eventually(lambda count=minute + 1: it.count("forwarded") == count)

    assert it.count("returned") == 0


async def test_records_without_a_time_are_never_the_same() -> None:
    made = ExportLogsServiceRequest()
    record = made.resource_logs.add().scope_logs.add().log_records.add(event_name="retrying")
    async with running(FakeTransport(), signal=LOGS) as it:
        for count in (1, 2):
            it.forward(made.SerializeToString())
            await eventually(lambda count=count: it.count("forwarded") == count)
        record.time_unix_nano = 1
        for _ in range(2):
            it.forward(made.SerializeToString())
        await eventually(lambda: it.count("returned") == 1)


def test_what_is_remembered_is_bounded() -> None:
    lately = Forwarded(lambda: 0.0, room=10)

    lately.again(range(1000))

    assert lately.again(range(980, 1000)) == set(range(20))
    assert not lately.again(range(900))


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:4317", "http://localhost:4318/v1/traces", "http://[::1]:4317"]
)
def test_forwarding_to_oneself_is_a_configuration_error(endpoint: str) -> None:
    settings = Config.model_validate({"forward": {"endpoint": endpoint}})

    assert [line.partition(":")[0] for line in crosscheck(settings)] == ["forward.endpoint"]


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.7", socket.gethostname()])
@pytest.mark.parametrize("listener", ["receiver.grpc", "receiver.http"])
def test_so_is_an_address_of_the_pod_where_the_receiver_listens_there(
    host: str, listener: str
) -> None:
    kind = listener.partition(".")[2]
    receiver = {kind: {"host": "0.0.0.0", "port": 5317}}
    elsewhere = {kind: {"host": "127.0.0.1", "port": 5317}}
    forward = {"endpoint": f"http://{host}:5317"}

    (line,) = crosscheck(Config.model_validate({"receiver": receiver, "forward": forward}))

    assert line.startswith("forward.endpoint: ")
    if not is_loopback(host) and host != "0.0.0.0":
        named = Config.model_validate({"receiver": elsewhere, "forward": forward})
        assert crosscheck(named) == []


@pytest.mark.parametrize("endpoint", ["backend:4317", "https://otel.example.org", "127.0.0.1:4327"])
def test_forwarding_elsewhere_is_fine(endpoint: str) -> None:
    assert crosscheck(Config.model_validate({"forward": {"endpoint": endpoint}})) == []

"""The forwarder: bounded, patient, and honest about what it dropped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from collector.base.errors import ConfigError, Permanent, Retryable
from collector.base.telemetry import Telemetry
from collector.config.crosscheck import crosscheck
from collector.config.tree import Config, OtlpTarget
from collector.receiver.families import ReceiverFamilies
from collector.receiver.forward import PATIENCE, RESULTS, Forwarder, forwarders
from collector.records.otlp_signals import OTLP_SIGNALS
from tests.support.eventually import eventually


@dataclass
class FakeTransport:
    """A backend that answers as told; `gate` holds every call until it is set."""

    answers: list[Exception | tuple[int, str]] = field(
        default_factory=list[Exception | tuple[int, str]]
    )
    gate: asyncio.Event | None = None
    taken: list[bytes] = field(default_factory=list[bytes])
    closed: bool = False

    async def export(self, request: bytes) -> tuple[int, str]:
        if self.gate is not None:
            await self.gate.wait()
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
    transport: FakeTransport, *, limit: int = 1000, grace: float = 60.0
) -> AsyncGenerator[Running]:
    telemetry, stopping, now = Telemetry(), asyncio.Event(), [0.0]
    forward = Forwarder(
        transport,
        families=ReceiverFamilies(telemetry),
        clock=lambda: now[0],
        limit=limit,
        longest_wait=0.001,
        grace=grace,
    )
    run = asyncio.create_task(forward.run(stopping))
    try:
        yield Running(forward, transport, telemetry, stopping, now)
    finally:
        stopping.set()
        await run


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


async def test_spans_that_the_backend_rejected_are_told() -> None:
    async with running(FakeTransport(answers=[(2, "too old")])) as it:
        it.forward(b"a")
        await eventually(lambda: it.count("partial") == 1)


async def test_a_request_nobody_takes_is_given_up_after_a_while_so_that_others_get_their_turn() -> (
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


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:4317", "http://localhost:4318/v1/traces", "http://[::1]:4317"]
)
def test_forwarding_to_oneself_is_a_configuration_error(endpoint: str) -> None:
    settings = Config.model_validate({"forward": {"endpoint": endpoint}})

    assert [line.partition(":")[0] for line in crosscheck(settings)] == ["forward.endpoint"]


@pytest.mark.parametrize("endpoint", ["backend:4317", "https://otel.example.org", "127.0.0.1:4327"])
def test_forwarding_elsewhere_is_fine(endpoint: str) -> None:
    assert crosscheck(Config.model_validate({"forward": {"endpoint": endpoint}})) == []

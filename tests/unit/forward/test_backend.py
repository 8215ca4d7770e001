"""How a request gets to the backend under `forward`, and what becomes of one that it does not take."""

import asyncio
import socket
from dataclasses import dataclass, field

import pytest

from collector.base.errors import ConfigError, Permanent, RequestFailed, Retryable, TooLarge
from collector.base.net import is_loopback
from collector.base.retry import Backoff
from collector.base.telemetry import Telemetry
from collector.config.crosscheck import crosscheck
from collector.config.sinks import OtlpTarget
from collector.config.tree import Config
from collector.forward.backend import (
    HELD_TRIES,
    MOST,
    PAUSE,
    Backend,
    Backends,
    Part,
    StopCameFirst,
)
from collector.forward.families import RESULTS, ForwardFamilies
from collector.otlp.items import keys_of
from collector.otlp.span_head import SpanHeads
from collector.records.otlp_signals import TRACES
from tests.support.counted import counted
from tests.support.forwarding import FakeTransport, forwarded_spans
from tests.support.otlp import body, span
from tests.support.table import for_each


@dataclass
class Stand:
    """A backend over a transport of the test's."""

    transport: FakeTransport
    telemetry: Telemetry = field(default_factory=Telemetry)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    waits: list[float] = field(default_factory=list[float])
    now: float = 1000.0

    def __post_init__(self) -> None:
        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)
            self.now += seconds

        self.backend = Backend(
            self.transport,
            TRACES,
            families=ForwardFamilies(self.telemetry),
            backoff=Backoff(longest=5.0, sleep=sleep),
            now=lambda: self.now,
        )

    async def deliver(self, *requests: bytes) -> int:
        """How many are lost."""
        parts = [Part(each, len(keys_of(each, SpanHeads))) for each in requests]
        return sum((await self.backend.deliver(parts, self.stopping)).values())

    def count(self, result: str, of: str = "requests") -> float:
        return counted(self.telemetry, f"forward_{of}_total", result=result)


async def test_requests_go_joined_and_in_order() -> None:
    it = Stand(FakeTransport())

    assert await it.deliver(*(body(span(1, at)) for at in (1, 2, 3))) == 0

    assert len(it.transport.taken) == 1
    assert forwarded_spans(it.transport) == [1, 2, 3]
    assert (it.count("forwarded"), it.count("sent", "spans")) == (1, 3)


async def test_a_request_is_at_most_four_mebibytes() -> None:
    it = Stand(FakeTransport())
    large = [span(at, at, text="x" * (1 << 20)) for at in range(1, 10)]

    await it.deliver(body(*large[:6]), *(body(each) for each in large[6:]))

    assert max(map(len, it.transport.taken)) <= MOST
    assert forwarded_spans(it.transport) == list(range(1, 10))


async def test_a_backend_that_is_away_is_tried_until_it_takes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    no_access = [Retryable("HTTP 401: who are you?") for _ in range(1000)]
    it = Stand(FakeTransport(answers=[*no_access]))

    assert await it.deliver(body(span())) == 0

    assert (it.count("retried"), it.count("forwarded")) == (1000, 1)
    assert max(it.waits) == 5.0
    assert caplog.text.count("401") == 1


@pytest.mark.parametrize("error", [Permanent("HTTP 400"), TooLarge("HTTP 413")])
async def test_one_trace_that_is_refused_is_lost_alone_and_named(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    bad = 3
    it = Stand(FakeTransport(refuses=(b"poison", error)))
    spans = [span(at, at, text="poison" if at == bad else "") for at in range(1, 8)]

    assert await it.deliver(*(body(each) for each in spans)) == 1

    assert forwarded_spans(it.transport) == [1, 2, 4, 5, 6, 7]
    assert (it.count("refused"), it.count("lost", "spans")) == (1, 1)
    assert it.count("sent", "spans") == 6
    assert f"refused trace {bad:032x}, which is lost" in caplog.text


async def test_many_lost_traces_are_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    it = Stand(FakeTransport(refuses=(b"poison", Permanent("HTTP 400"))))

    for at in range(1, 121):
        assert await it.deliver(body(span(at, at, text="poison"))) == 1
        it.now += 1.0

    assert [line.partition("lost, ")[2] for line in caplog.messages] == [
        "of 1 such requests the newest: HTTP 400",
        "of 60 such requests the newest: HTTP 400",
    ]
    assert it.count("refused") == 120


async def test_a_trace_that_the_backend_fails_on_holds_up_no_other_and_is_lost_after_ten_tries() -> (
    None
):
    it = Stand(FakeTransport(refuses=(b"poison", RequestFailed("HTTP 500"))))
    spans = [span(at, at, text="poison" if at == 3 else "") for at in range(1, 8)]

    assert await it.deliver(*(body(each) for each in spans)) == 0

    assert forwarded_spans(it.transport) == [1, 2, 4, 5, 6, 7]
    assert it.backend.is_holding
    tries = 1
    while not await it.deliver(body(span(100 + tries, 100 + tries))):
        it.now += PAUSE
        tries += 1
    assert tries in {HELD_TRIES, HELD_TRIES + 1}
    assert not it.backend.is_holding
    assert (it.count("failed"), it.count("lost", "spans")) == (1, 1)


async def test_a_trace_that_fails_is_not_lost_while_no_other_passes() -> None:
    it = Stand(FakeTransport(refuses=(b"poison", RequestFailed("HTTP 500"))))
    await it.deliver(body(span(1, 1, text="poison")))

    for _ in range(10 * HELD_TRIES):
        assert await it.deliver() == 0
        it.now += PAUSE

    assert it.backend.is_holding
    it.transport.refuses = None
    await it.deliver()
    assert forwarded_spans(it.transport) == [1]


@for_each("failures", [*range(60), 500])
async def test_a_backend_that_fails_for_a_while_loses_nothing_and_gets_each_trace_in_order(
    failures: int,
) -> None:
    it = Stand(FakeTransport(answers=[RequestFailed("HTTP 500") for _ in range(failures)]))
    spans = {trace: [10 * trace + at for at in range(8)] for trace in range(1, 6)}

    for at in range(0, 8, 2):
        batch = [body(span(each, of[at + n])) for n in (0, 1) for each, of in spans.items()]
        assert await it.deliver(*batch) == 0
    while it.backend.is_holding:
        assert await it.deliver() == 0
        it.now += PAUSE

    arrived = forwarded_spans(it.transport)
    for numbers in spans.values():
        assert [each for each in arrived if each in numbers] == numbers


async def test_what_fails_beyond_a_bound_holds_up_all_else_until_the_backend_is_back() -> None:
    it = Stand(FakeTransport(answers=[RequestFailed("HTTP 500") for _ in range(200)]))
    large = [body(span(at, at, text="x" * (3 << 20))) for at in range(1, 8)]

    assert await it.deliver(*large) == 0

    assert it.transport.answers == []  # it was waited for
    while it.backend.is_holding:
        await it.deliver()
        it.now += PAUSE
    assert sorted(forwarded_spans(it.transport)) == list(range(1, 8))


async def test_a_trace_that_is_invalid_is_not_cut() -> None:
    it = Stand(FakeTransport(refuses=(b"poison", Permanent("HTTP 400"))))

    assert await it.deliver(body(span(1, 1), span(1, 2, text="poison"))) == 1

    assert it.transport.taken == []
    assert it.transport.tries == 1


async def test_what_is_too_large_goes_as_halves_and_only_what_is_still_too_large_is_lost() -> None:
    spans = [span(1, at, text="x" * 20) for at in range(1, 8)]
    huge = [span(1, at, text="x" * 500) for at in (9, 10)]
    it = Stand(FakeTransport(limit=300))

    assert await it.deliver(body(*spans[:3], *huge, *spans[3:])) == 1, "of one trace"

    assert forwarded_spans(it.transport) == list(range(1, 8))
    assert it.count("halved") > 0
    assert it.count("retried") == 0


async def test_a_stop_ends_the_tries() -> None:
    it = Stand(FakeTransport(answers=[Retryable("no")] * 10))
    it.stopping.set()

    with pytest.raises(StopCameFirst):
        await it.deliver(body(span()))

    assert it.count("retried") == 1


def test_every_result_is_there_from_the_start() -> None:
    it = Stand(FakeTransport())

    assert {r: it.count(r) for r in RESULTS} == dict.fromkeys(RESULTS, 0.0)


def test_an_endpoint_that_does_not_fit_its_protocol_names_its_setting() -> None:
    target = OtlpTarget.model_validate({"endpoint": "backend:4318", "protocol": "http"})

    with pytest.raises(ConfigError, match=r"^forward\.endpoint: "):
        Backends.configured(target, Telemetry())


NAME, ELSEWHERE = socket.gethostname(), "127.0.0.1:5317"


@for_each(
    ("endpoint", "grpc", "http", "is_own"),
    [
        ("127.0.0.1:4317", "127.0.0.1:4317", ELSEWHERE, True),
        ("http://localhost:4318/v1/traces", ELSEWHERE, "127.0.0.1:4318", True),
        ("http://[::1]:4317", "127.0.0.1:4317", ELSEWHERE, True),
        *[
            (f"http://{host}:4317", *listeners, True)
            for host in ("0.0.0.0", "127.0.0.7", NAME)
            for listeners in (("0.0.0.0:4317", ELSEWHERE), (ELSEWHERE, "0.0.0.0:4317"))
        ],
        (f"http://{NAME}:4317", "127.0.0.1:4317", ELSEWHERE, is_loopback(NAME)),
        ("backend:4317", "127.0.0.1:4317", ELSEWHERE, False),
        ("https://otel.example.org", "127.0.0.1:4317", ELSEWHERE, False),
        ("127.0.0.1:4327", "127.0.0.1:4317", ELSEWHERE, False),
    ],
)
def test_forwarding_to_oneself_is_a_configuration_error(
    endpoint: str, grpc: str, http: str, *, is_own: bool
) -> None:
    def listener(text: str) -> dict[str, str]:
        host, _, port = text.partition(":")
        return {"host": host, "port": port}

    receiver = {"grpc": listener(grpc), "http": listener(http)}
    settings = Config.model_validate({"receiver": receiver, "forward": {"endpoint": endpoint}})

    lines = crosscheck(settings)
    assert [line.partition(":")[0] for line in lines] == ["forward.endpoint"] * is_own


def test_spans_that_expire_before_they_may_be_sent_are_a_configuration_error() -> None:
    def lines(late: str, kind: str) -> list[str]:
        return crosscheck(
            Config.model_validate(
                {
                    "log": {"kind": kind, "kafka": {"bootstrap_servers": "kafka:9092"}},
                    "windows": {"trace": {"late": late}},
                    "forward": {"endpoint": "backend:4317", "keep": {}},
                }
            )
        )

    assert [line.partition(":")[0] for line in lines("7d", "kafka")] == ["forward.keep.wait"]
    assert lines("6d", "kafka") == []
    assert lines("7d", "disk") == []


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_is_between_none_and_all(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        Config.model_validate({"forward": {"endpoint": "backend:4317", "keep": {"share": share}}})


def test_rules_without_a_backend_are_a_configuration_error() -> None:
    with pytest.raises(ValueError, match="endpoint"):
        Config.model_validate({"forward": {"keep": {}}})

"""The event `gen_ai.evaluation.result`: exactly the convention's attributes, ours under `spanwise.`."""

import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from pydantic import ValidationError

from collector.base.errors import ConfigError, Retryable
from collector.config.sinks import OtlpTarget
from collector.records.signal import Signal
from collector.sinks.otlp import OtlpSink, event
from collector.sinks.port import Refused
from evaluators.judge_use import JudgeUse
from tests.support.otlp_server import LogsServer, grpc_server, http_server
from tests.support.signals import BASE, covered, encode, failed, signal
from tests.support.sink_contract import published
from tests.support.table import for_each

DATA = Path(__file__).parents[2] / "data" / "sinks" / "otlp_events.json"
JUDGE = JudgeUse(model="m", calls=1, input_tokens=10, output_tokens=2, cost_usd=0.5, cached=False)
EVENTS: dict[str, Signal] = {
    "a score of a trace is parented to its span": signal(trace="t", at=BASE + 0.25),
    "a failure has an error and no score": failed(),
    "a session of a judge, with extras under spanwise": signal(
        trace=None, judge=JUDGE, metadata={"k": [1]}, evidence=("a", "b"), coverage=covered(4, 3)
    ),
    "a session of one trace is no conversation": signal(session_source="trace"),
}


@for_each("name", EVENTS)
def test_an_event_has_the_attributes_of_the_convention_and_ours_under_spanwise(name: str) -> None:
    """As OTLP/JSON, whose ids are base64 here."""
    found = MessageToDict(event(EVENTS[name], observed=BASE + 2))

    assert found == json.loads(DATA.read_text())[name]


def target(logs: LogsServer, protocol: str) -> OtlpTarget:
    return OtlpTarget.model_validate(
        {"endpoint": logs.endpoint, "protocol": protocol, "headers": {"X-Key": "secret"}}
    )


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_headers_resource_and_scope_arrive(protocol: str) -> None:
    async with grpc_server() if protocol == "grpc" else http_server() as logs:
        sink = OtlpSink(target(logs, protocol), version="1.2.3")
        await sink.deliver([published(0), published(1)])
        await sink.close(1.0)

    assert logs.headers[0]["x-key"] == "secret"
    (resource,) = logs.resources
    assert resource.resource.attributes[0].value.string_value == "support-bot"
    scope = resource.scope_logs[0].scope
    assert (scope.name, scope.version) == ("spanwise", "1.2.3")


@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        ("grpc", "UNAVAILABLE"),
        ("grpc", "UNAUTHENTICATED"),
        ("grpc", "UNIMPLEMENTED"),
        ("http", "429"),
        ("http", "401"),
        ("http", "404"),
        ("http", "503"),
    ],
)
async def test_what_time_or_a_human_mends_is_retried(protocol: str, code: str) -> None:
    async with grpc_server() if protocol == "grpc" else http_server() as logs:
        logs.code = code
        sink = OtlpSink(target(logs, protocol))
        with pytest.raises(Retryable):
            await sink.deliver([published(0)])
        await sink.close(1.0)


async def test_resource_exhausted_that_names_no_wait_is_final() -> None:
    """OTLP: it may only be repeated where RetryInfo says when; so the halves are tried, and each event alone."""
    async with grpc_server() as logs:
        logs.code = "RESOURCE_EXHAUSTED"
        sink = OtlpSink(target(logs, "grpc"))
        with pytest.raises(Refused) as refused:
            await sink.deliver([published(0), published(1)])
        await sink.close(1.0)

    assert len(refused.value.reasons) == 2
    assert all(why.startswith("RESOURCE_EXHAUSTED") for why in refused.value.reasons.values())


async def test_what_the_other_side_rejects_is_lost_by_its_number() -> None:
    async with grpc_server() as logs:
        logs.rejects = 2
        sink = OtlpSink(target(logs, "grpc"))
        with pytest.raises(Refused) as refused:
            await sink.deliver([published(number) for number in range(5)])
        await sink.close(1.0)

    assert len(refused.value.reasons) == 2


async def test_requests_stay_below_a_stock_collectors_limit() -> None:
    big = [
        published(n, encode(signal(trace=f"t-{n}", explanation="x" * 60_000))) for n in range(80)
    ]
    async with http_server() as logs:
        sink = OtlpSink(target(logs, "http"))
        await sink.deliver(big)
        await sink.close(1.0)

    assert len(logs.records()) == 80
    assert len(logs.headers) >= 5
    assert max(int(each["content-length"]) for each in logs.headers) < 2 << 20


@pytest.mark.parametrize(
    ("protocol", "endpoint"), [("http", "localhost:4318"), ("grpc", "ftp://x"), ("grpc", "")]
)
def test_an_endpoint_that_is_none_is_a_configuration_error(protocol: str, endpoint: str) -> None:
    with pytest.raises((ConfigError, ValidationError)):
        OtlpSink(OtlpTarget.model_validate({"endpoint": endpoint, "protocol": protocol}))

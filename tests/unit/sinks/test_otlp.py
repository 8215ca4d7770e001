"""The event `gen_ai.evaluation.result`: exactly the convention's attributes, ours under `spanwise.`."""

from typing import Any

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from pydantic import ValidationError

from collector.base.errors import ConfigError, Retryable
from collector.config.sinks import OtlpTarget
from collector.sinks.otlp import OtlpSink, event
from collector.sinks.port import Refused
from evaluators.judge_use import JudgeUse
from tests.support.otlp_logs import LogsServer, grpc_server, http_server
from tests.support.signals import BASE, covered, encode, failed, hex_of, signal
from tests.support.sink_contract import published

CONVENTION = {
    "gen_ai.evaluation.name",
    "gen_ai.evaluation.score.value",
    "gen_ai.evaluation.score.label",
    "gen_ai.evaluation.explanation",
    "error.type",
    "gen_ai.conversation.id",
}


def attributes(log: LogRecord) -> dict[str, Any]:
    return {
        each.key: getattr(each.value, str(each.value.WhichOneof("value")))
        for each in log.attributes
    }


def test_a_score_is_parented_to_its_span() -> None:
    log = event(signal(trace="t", at=BASE + 0.25), observed=BASE + 2)

    assert log.event_name == "gen_ai.evaluation.result"
    assert (log.trace_id.hex(), log.span_id.hex()) == (hex_of("t"), hex_of("t", 16))
    assert log.time_unix_nano == 1_700_000_000_250_000_000
    assert log.observed_time_unix_nano == 1_700_000_002_000_000_000
    found = attributes(log)
    assert {key: found[key] for key in CONVENTION & found.keys()} == {
        "gen_ai.evaluation.name": "tool_correctness",
        "gen_ai.evaluation.score.value": 0.75,
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.explanation": "3 of 4 calls were right",
        "gen_ai.conversation.id": "s-1",
    }
    assert all(key in CONVENTION or key.startswith("spanwise.") for key in found)


def test_a_failure_has_an_error_and_no_score() -> None:
    found = attributes(event(failed(), observed=BASE))

    assert found["error.type"] == "timeout"
    assert "gen_ai.evaluation.score.value" not in found
    assert "gen_ai.evaluation.score.label" not in found
    assert found["spanwise.error.message"] == "no verdict in 30 s"
    assert found["spanwise.outcome"] == "failed"


def test_extras_stand_under_spanwise() -> None:
    judge = JudgeUse(
        model="m", calls=1, input_tokens=10, output_tokens=2, cost_usd=0.5, cached=False
    )
    what = signal(
        trace=None, judge=judge, metadata={"k": [1]}, evidence=("a", "b"), coverage=covered(4, 3)
    )
    found = attributes(event(what, observed=BASE))

    assert found["spanwise.judge.cost_usd"] == 0.5
    assert found["spanwise.judge.cached"] is False
    assert found["spanwise.metadata"] == '{"k":[1]}'
    assert [each.string_value for each in found["spanwise.evidence"].values] == ["a", "b"]
    assert found["spanwise.coverage.present"] == 3
    assert found["spanwise.scope"] == "session"


def test_a_session_of_one_has_no_conversation() -> None:
    found = attributes(event(signal(session_source="trace"), observed=BASE))

    assert "gen_ai.conversation.id" not in found
    assert found["spanwise.session_id"] == "s-1"


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
    text = "x" * 60_000
    big = [
        published(n, signal_bytes)
        for n, signal_bytes in enumerate([_big(n, text) for n in range(80)])
    ]
    async with http_server() as logs:
        sink = OtlpSink(target(logs, "http"))
        await sink.deliver(big)
        await sink.close(1.0)

    assert len(logs.records()) == 80
    assert len(logs.headers) >= 5
    assert max(int(each["content-length"]) for each in logs.headers) < 2 << 20


def _big(number: int, text: str) -> bytes:
    return encode(signal(trace=f"t-{number}", explanation=text))


@pytest.mark.parametrize(
    ("protocol", "endpoint"), [("http", "localhost:4318"), ("grpc", "ftp://x"), ("grpc", "")]
)
def test_an_endpoint_that_is_none_is_a_configuration_error(protocol: str, endpoint: str) -> None:
    with pytest.raises((ConfigError, ValidationError)):
        OtlpSink(OtlpTarget.model_validate({"endpoint": endpoint, "protocol": protocol}))

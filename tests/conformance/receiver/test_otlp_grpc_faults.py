"""OTLP over gRPC, what goes wrong: rows G10 to G15 and G20 to G26 of the conformance table."""

import asyncio
import struct
from functools import partial

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import BadRequest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.trace.export import SpanExportResult

from collector.base.errors import LogFull, LogUnavailable, RecordTooLarge, Retryable
from collector.base.http_server import BearerTokens
from collector.config.tree import ReceiverConfig
from collector.receiver.grpc import GrpcServer, options
from collector.records.otlp_signals import OTLP_SIGNALS
from tests.support.http2 import ACK, GOAWAY, PING, PREFACE, SETTINGS, frame
from tests.support.otlp import body, length, span, trace_id
from tests.support.received_log import ReceivedLog
from tests.support.receiving import (
    assert_refused,
    call,
    connected,
    export,
    exported,
    intake,
    sdk_spans,
    serving,
    through,
    until,
)

OK, UNAVAILABLE = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE
MIB = 1 << 20


@pytest.mark.parametrize("reason", [LogFull("full"), LogUnavailable("away")])
async def test_g10_a_refusal_is_never_a_partial_success(reason: Retryable) -> None:
    """G10: clients must not retry after partial success, so overload is an error, bad spans or not."""
    async with serving() as served:
        served.log.fails = reason

        said = await export(served.target, body(span(1, 1), span(bytes(16), 2)))

        assert_refused(said)
        assert served.count("grpc", "refused") == 2
        assert served.count("grpc", "accepted") == 0


async def test_g11_the_python_exporter_waits_as_long_as_it_was_asked_to() -> None:
    """G11: it reads RetryInfo from its own trailer only."""
    async with serving() as served:
        served.log.write_failures = [LogFull("full")]
        exporter = OTLPSpanExporter(endpoint=served.target, insecure=True)

        result = await through(exporter, sdk_spans(1))

        assert result is SpanExportResult.SUCCESS
        first, second = served.log.arrivals
        assert second - first >= 1.0


async def test_g13_what_cannot_be_decoded_is_invalid_argument_with_bad_request() -> None:
    """G13: raw ff ff ff ff."""
    said, served = await exported(b"\xff\xff\xff\xff")

    assert said.code is grpc.StatusCode.INVALID_ARGUMENT
    detail = said.detail(BadRequest)
    assert isinstance(detail, BadRequest)
    assert detail.field_violations[0].field == "body"
    assert said.status.code == 3
    assert said.delay is None
    assert served.count("grpc", "invalid") == 1


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (RuntimeError("bug"), UNAVAILABLE),
        (KeyError("bug"), UNAVAILABLE),
        (OSError("disk"), UNAVAILABLE),
        (MemoryError(), UNAVAILABLE),
        (TimeoutError(), UNAVAILABLE),
        (LogFull("full"), UNAVAILABLE),
        (LogUnavailable("away"), UNAVAILABLE),
        (RecordTooLarge("big"), grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
)
async def test_g12_g14_each_fault_of_the_log_has_its_code(
    fault: Exception, code: grpc.StatusCode
) -> None:
    """G14: UNKNOWN and INTERNAL make the client throw the batch away.

    G12: overload is never RESOURCE_EXHAUSTED, which the Collector drops without RetryInfo.
    """
    async with serving() as served:
        served.log.fails = fault

        said = await export(served.target, body(span()))

        assert said.code is code


async def test_g15_every_span_refused_for_a_while_arrives_after_relief() -> None:
    """G15: delays are short enough for the client's 10 s."""
    async with serving() as served:
        served.log.fails = LogFull("full")
        exporter = OTLPSpanExporter(endpoint=served.target, insecure=True)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(through(exporter, sdk_spans(10)))
            await until(lambda: served.count("grpc", "refused") >= 10)
            served.log.fails = None

        assert sending.result() is SpanExportResult.SUCCESS
        assert len(served.log.spans()) == 10


def _deep(levels: int) -> bytes:
    """A request whose only attribute is an array in an array in an array; protobuf itself would not build it."""
    value = AnyValue(string_value="x").SerializeToString()
    for _ in range(levels):
        values = b"\x0a" + length(value) + value  # ArrayValue.values
        value = b"\x2a" + length(values) + values  # AnyValue.array_value
    attribute = b"\x0a\x04deep\x12" + length(value) + value
    nested = span().SerializeToString() + b"\x4a" + length(attribute) + attribute
    scope = b"\x12" + length(nested) + nested
    resource = b"\x12" + length(scope) + scope
    return b"\x0a" + length(resource) + resource


async def test_g20_a_nested_bomb_is_rejected_alone_and_harms_nothing() -> None:
    """G20: 120 nested arrays."""
    async with serving() as served:
        bomb = await export(served.target, _deep(120))
        fine = await export(served.target, _deep(20))

        assert (bomb.code, bomb.rejected) == (OK, 1)
        assert (fine.code, fine.rejected) == (OK, 0)
        assert len(served.log.written) == 1


async def test_g20_invalid_utf8_in_a_string_is_repaired() -> None:
    """G20: ff in a string."""
    sent = body(span(text="needle")).replace(b"needle", b"nee\xffle")
    said, served = await exported(sent)

    assert (said.code, said.rejected) == (OK, 0)
    assert served.log.spans()[0].attributes[0].value.string_value == "nee\ufffdle"


async def test_g21_pings_are_tolerated() -> None:
    """G21: 20 pings without data, one after the other, far beyond grpc's default, bring no GOAWAY."""
    begin = PREFACE + frame(SETTINGS, 0, 0, b"")
    async with (
        serving() as served,
        connected(served.receiver.grpc_port, begin) as (reader, writer),
    ):
        for number in range(20):
            writer.write(frame(PING, 0, 0, struct.pack(">Q", number)))
            while (kind := await _next_kind(reader)) != PING:
                assert kind != GOAWAY, f"after {number} pings"


async def _next_kind(reader: asyncio.StreamReader) -> int:
    """The kind of the next frame; a ping only if it acknowledges ours."""
    head = await reader.readexactly(9)
    await reader.readexactly(int.from_bytes(head[:3], "big"))
    return -1 if head[3] == PING and not head[4] & ACK else head[3]


async def test_g22_a_connection_that_ages_out_loses_no_batch() -> None:
    """G22: age 180 s and 60 s grace by default; here 0.5 s, under load."""
    assert dict(options(MIB))["grpc.max_connection_age_ms"] == 180_000
    assert dict(options(MIB))["grpc.max_connection_age_grace_ms"] == 60_000
    log = ReceivedLog()
    server = GrpcServer(
        intake=intake(log),
        bearer=BearerTokens(()),
        signals=OTLP_SIGNALS,
        host="127.0.0.1",
        port=0,
        max_request=MIB,
        tls=None,
        extra_options=(("grpc.max_connection_age_ms", 500),),
    )
    await server.start()
    states: set[grpc.ChannelConnectivity] = set()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        sent = 0
        async with asyncio.timeout(60):
            while sent < 20 or not states - {grpc.ChannelConnectivity.READY}:
                sent += 1
                assert (await call(channel, body(span(1, sent)))).code is OK
                await asyncio.sleep(0.02)
                states.add(channel.get_state())
            assert (await call(channel, body(span(1, sent + 1)))).code is OK
    await server.stop(0)
    assert len(log.spans()) == sent + 1


async def test_g23_what_is_in_flight_finishes_and_new_calls_are_unavailable() -> None:
    """G23."""
    async with serving() as served, grpc.aio.insecure_channel(served.target) as channel:
        async with served.holding(call(channel, body(span(1, 1)))) as (early,):
            served.receiver.stop_accepting()
            refused = await call(channel, body(span(1, 2)))
            stopping = asyncio.create_task(served.receiver.stop(5))
        await stopping
        late = await export(served.target, body(span(1, 3)), timeout=20)

        assert early.result().code is OK
        assert_refused(refused)
        assert late.code is UNAVAILABLE
        assert served.log.spans() == [span(1, 1)]


async def test_g24_a_repeated_batch_is_accepted_again() -> None:
    """G24: duplicates come of retries; they are distinguished by (trace id, span id) behind the log."""
    async with serving() as served:
        said = [await export(served.target, body(span())) for _ in range(2)]

        assert {one.code for one in said} == {OK}
        assert [record.key for record in served.log.written] == [trace_id(1)] * 2


METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


async def test_g25_metrics_are_answered_ok_and_dropped() -> None:
    """G25: an endpoint for the whole process makes no errors; the log gets nothing."""
    async with serving() as served:
        result = await asyncio.to_thread(_send_no_metrics, served.target)
        said = await export(served.target, b"", method=METRICS)

        assert result is MetricExportResult.SUCCESS
        assert said.code is grpc.StatusCode.OK
        assert served.dropped("grpc") == 2
        assert served.log.written == []


async def test_g25_metrics_need_the_token_too() -> None:
    said, served = await exported(b"", method=METRICS, bearer_tokens=("one",))

    assert said.code is grpc.StatusCode.UNAUTHENTICATED
    assert served.dropped("grpc") == 0


def _send_no_metrics(target: str) -> MetricExportResult:
    exporter = OTLPMetricExporter(endpoint=target, insecure=True)
    try:
        return exporter.export(MetricsData(resource_metrics=[]))  # pyright: ignore[reportUnknownMemberType] - its **kwargs
    finally:
        exporter.shutdown()  # pyright: ignore[reportUnknownMemberType] - its **kwargs


async def test_g26_health_is_answered_and_watched() -> None:
    """G26: SERVING for the whole and the service, NOT_FOUND for others, NOT_SERVING when stopping."""
    name = b"opentelemetry.proto.collector.trace.v1.TraceService"
    check = "/grpc.health.v1.Health/Check"
    async with serving() as served, grpc.aio.insecure_channel(served.target) as channel:
        whole = await call(channel, b"", method=check)
        service = await call(channel, b"\x0a" + bytes([len(name)]) + name, method=check)
        other = await call(channel, b"\x0a\x01x", method=check)
        garbage = await call(channel, b"\xff", method=check)
        watch = channel.unary_stream(
            "/grpc.health.v1.Health/Watch", request_serializer=bytes, response_deserializer=bytes
        )(b"")
        first = await watch.read()
        served.receiver.stop_accepting()
        second = await watch.read()
        stopping = await call(channel, b"", method=check)

        assert (whole.body, service.body, stopping.body) == (b"\x08\x01", b"\x08\x01", b"\x08\x02")
        assert (first, second) == (b"\x08\x01", b"\x08\x02")
        assert other.code is grpc.StatusCode.NOT_FOUND
        assert garbage.code is grpc.StatusCode.INVALID_ARGUMENT


async def test_g26_it_listens_on_loopback_unless_configured_otherwise() -> None:
    """G26: default bind is localhost."""
    defaults = ReceiverConfig()

    assert (defaults.grpc.host, defaults.http.host) == ("127.0.0.1", "127.0.0.1")


async def test_g26_a_bad_token_is_unauthenticated() -> None:
    """G26: any of the tokens is accepted; none, a wrong one or another scheme is not."""
    async with serving(bearer_tokens=("one", "two")) as served:
        send = partial(export, served.target, body(span()))
        headers = ("Bearer one", "bearer two", "Bearer three", "Basic one", "Bearer")
        said = [await send(metadata=[("authorization", each)]) for each in headers]
        missing = await send()
        health = await export(served.target, b"", method="/grpc.health.v1.Health/Check")

        denied = grpc.StatusCode.UNAUTHENTICATED
        assert [each.code for each in said] == [OK, OK, denied, denied, denied]
        assert missing.code is denied
        assert health.code is OK
        assert served.count("grpc", "unauthenticated") == 4

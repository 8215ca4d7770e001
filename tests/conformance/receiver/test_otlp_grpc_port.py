"""OTLP over gRPC, its errors, its connections and its health: rows G13, G21 to G26 of the conformance table."""

import asyncio
import struct

import grpc
import grpc.aio
from google.rpc.error_details_pb2 import BadRequest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData

from collector.base.http_server import BearerTokens
from collector.receiver.grpc import GrpcServer, options
from collector.records.otlp_signals import OTLP_SIGNALS
from tests.support.http2 import ACK, GOAWAY, PING, PREFACE, SETTINGS, frame
from tests.support.otlp import body, span
from tests.support.received_log import ReceivedLog
from tests.support.receiving import call, connected, exported, intake, serving

OK, UNAVAILABLE = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE
MIB = 1 << 20


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


METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


async def test_g25_metrics_are_answered_ok_and_dropped() -> None:
    """G25: an endpoint for the whole process makes no errors; the log gets nothing."""
    async with serving() as served:
        result = await asyncio.to_thread(_send_no_metrics, served.target)

        assert result is MetricExportResult.SUCCESS


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

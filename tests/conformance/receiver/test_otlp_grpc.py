"""OTLP over gRPC, row by row of specs/otlp.md, section 1.1. A raw channel is the client unless a row names one."""

from __future__ import annotations

import asyncio
import gzip
import logging
import struct
import time

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.trace.export import SpanExportResult

from collector import config
from collector.errors import LogFull, LogUnavailable, RecordTooLarge, Retryable
from collector.receiver.auth import Bearer
from collector.receiver.grpc import GrpcServer, options
from collector.receiver.intake import Intake
from collector.telemetry import Telemetry
from tests.support.fake_log import FakeLog, value
from tests.support.otlp import body, request, span, trace_id
from tests.support.receiving import Said, call, export, sdk_spans, serving, through, until

OK = grpc.StatusCode.OK
FORBIDDEN = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}
MIB = 1 << 20


def assert_refused(said: Said) -> None:
    """Retryable, and told so in both of the forms that clients read."""
    assert said.code is grpc.StatusCode.UNAVAILABLE
    assert said.detail(RetryInfo) is not None
    assert said.delay is not None
    assert 1.0 <= said.delay <= 4.0


async def test_g1_the_python_exporter_reaches_export_with_nothing_but_an_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G1: TraceService/Export, default port 4317."""
    assert OTLPSpanExporter()._endpoint == "localhost:4317"
    assert config.Receiver().grpc.port == 4317
    async with serving() as served:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{served.target}")
        exporter = OTLPSpanExporter()

        result = await through(exporter, sdk_spans(3))

        assert result is SpanExportResult.SUCCESS
        assert [s.name for s in served.log.spans()] == ["step 0", "step 1", "root"]


async def test_g2_gzip_from_the_python_exporter_is_accepted() -> None:
    """G2: compression none and gzip."""
    async with serving() as served:
        exporter = OTLPSpanExporter(
            endpoint=served.target, insecure=True, compression=grpc.Compression.Gzip
        )

        result = await through(exporter, sdk_spans(50))

        assert result is SpanExportResult.SUCCESS
        assert len(served.log.spans()) == 50


@pytest.mark.parametrize("compression", list(grpc.Compression))
async def test_g2_every_compression_of_grpc_gives_the_same_spans(
    compression: grpc.Compression,
) -> None:
    """G2: what arrives compressed is written as if it had not been."""
    sent = body(span(text="a" * 4000))
    async with serving() as served:
        said = await export(served.target, sent, compression=compression)

        assert said.code is OK
        assert [value(record) for record in served.log.written] == [sent]


@pytest.mark.parametrize(
    ("compression", "magic"),
    [(grpc.Compression.Gzip, b"\x1f\x8b"), (grpc.Compression.Deflate, b"\x78")],
)
async def test_g2_grpc_still_hands_compressed_messages_to_the_handler_as_they_came(
    compression: grpc.Compression, magic: bytes
) -> None:
    """G2: `grpc.per_message_decompression=0` is undocumented; when this fails, grpc inflates, unbounded by us."""
    seen: list[bytes] = []

    async def keep(message: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        del context
        seen.append(message)
        return b""

    handler = grpc.method_handlers_generic_handler(
        "opentelemetry.proto.collector.trace.v1.TraceService",
        {"Export": grpc.unary_unary_rpc_method_handler(keep)},
    )
    server = grpc.aio.server(handlers=[handler], options=options(MIB))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    await export(f"127.0.0.1:{port}", b"a" * 4000, compression=compression)

    await server.stop(0)
    assert seen[0].startswith(magic)
    assert len(seen[0]) < 200


async def test_g3_the_request_limit_at_its_default_size() -> None:
    """G3: 60 MiB is accepted, 70 MiB is RESOURCE_EXHAUSTED, final and counted."""
    spans = [span(1, number, text="a" * MIB) for number in range(1, 61)]
    more = spans + [span(1, number, text="a" * MIB) for number in range(61, 71)]
    async with serving(max_span=16 * MIB) as served:
        fits = await export(served.target, body(*spans))
        too_large = await export(served.target, body(*more))

        assert fits.code is OK
        assert len(served.log.spans()) == 60
        assert too_large.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert too_large.detail(RetryInfo) is None
        assert too_large.delay is None
        assert served.count("grpc", "too_large") == 1


async def test_g3_the_limit_holds_after_decompression() -> None:
    """G3: a gzip bomb is refused as too large."""
    async with serving(max_request=MIB) as served:
        said = await export(
            served.target, body(span(text="a" * 64 * MIB)), compression=grpc.Compression.Gzip
        )

        assert said.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert said.delay is None
        assert served.count("grpc", "too_large") == 1
        assert served.log.written == []


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
async def test_g3_bytes_in_flight_are_bounded_over_all_requests(
    compression: grpc.Compression,
) -> None:
    """G3: legal requests add up; what does not fit is refused, retryably, and fits again later."""
    sent = body(span(text="a" * (MIB * 9 // 10)))
    async with serving(max_request=MIB, max_span=MIB) as served:
        served.log.gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            held = [
                group.create_task(export(served.target, sent, compression=compression))
                for _ in range(4)
            ]
            await until(lambda: served.log.waiting == 4)

            one_more = await export(served.target, sent, compression=compression)
            served.log.gate.set()

        afterwards = await export(served.target, sent, compression=compression)

        assert_refused(one_more)
        assert {task.result().code for task in held} == {OK}
        assert afterwards.code is OK
        assert served.telemetry.registry.get_sample_value("spanwise_in_flight_bytes") == 0


async def test_g4_the_response_stays_small_however_many_spans_are_bad() -> None:
    """G4: 50,000 bad spans: an exact count and a message of at most 1 KiB with the first reasons."""
    bad = [span(bytes(16), 1)] * 50_000
    async with serving() as served:
        said = await export(served.target, body(*bad))

        assert said.code is OK
        assert len(said.body) < 4096
        assert said.rejected == 50_000
        message = said.response.partial_success.error_message
        assert len(message.encode()) <= 1024
        assert message.count("trace_id is all zeros") == 5


async def test_g5_calls_are_taken_concurrently() -> None:
    """G5: 64 calls on one channel are all in flight together."""
    async with serving() as served, grpc.aio.insecure_channel(served.target) as channel:
        served.log.gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            calls = [
                group.create_task(call(channel, body(span(number)))) for number in range(1, 65)
            ]
            await until(lambda: served.log.waiting == 64)
            served.log.gate.set()

        assert {task.result().code for task in calls} == {OK}
        assert len(served.log.spans()) == 64


async def test_g6_full_success_leaves_partial_success_unset() -> None:
    """G6."""
    async with serving() as served:
        said = await export(served.target, body(span()))

        assert said.code is OK
        assert not said.response.HasField("partial_success")
        assert served.count("grpc", "accepted") == 1


async def test_ok_is_said_only_after_the_log_has_the_spans() -> None:
    """DESIGN, section 2: until then the answer is owed."""
    async with serving() as served:
        served.log.gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(export(served.target, body(span())))
            await until(lambda: served.log.waiting == 1)
            owed = not answer.done() and served.count("grpc", "accepted") == 0
            served.log.gate.set()

        assert owed
        assert answer.result().code is OK
        assert served.log.spans() == [span()]


@pytest.mark.parametrize("empty", [b"", request().SerializeToString(), b"\x0a\x00"])
async def test_g7_an_empty_request_is_a_success_and_counts_nothing(empty: bytes) -> None:
    """G7: 0 bytes; an envelope without spans."""
    async with serving() as served:
        said = await export(served.target, empty)

        assert said.code is OK
        assert said.body == b""
        assert served.log.written == []
        assert served.count("grpc", "accepted") == 0


async def test_g8_good_spans_of_a_request_are_kept_and_bad_ones_counted_exactly() -> None:
    """G8: one good, one zero id, one id of 3 bytes."""
    async with serving() as served:
        said = await export(served.target, body(span(1, 1), span(bytes(16), 2), span(1, b"abc")))

        assert said.code is OK
        assert said.rejected == 2
        assert "span_id has 3 bytes, not 8" in said.response.partial_success.error_message
        assert served.log.spans() == [span(1, 1)]
        assert served.count("grpc", "accepted") == 1
        assert served.count("grpc", "invalid") == 2


async def test_g8_a_single_span_above_its_limit_is_rejected_and_counted() -> None:
    """G8: windows.trace.max_bytes holds for a single span too."""
    async with serving(max_span=1000) as served:
        said = await export(served.target, body(span(1, 1), span(1, 2, text="a" * 1000)))

        assert said.rejected == 1
        assert served.log.spans() == [span(1, 1)]
        assert served.count("grpc", "too_large") == 1


async def test_g9_strange_times_are_accepted_without_a_word() -> None:
    """G9: the option to warn with rejected_spans = 0 is not used: the Python SDK would log each one."""
    strange = span()
    strange.end_time_unix_nano = strange.start_time_unix_nano - 1
    async with serving() as served:
        said = await export(served.target, body(strange))

        assert said.body == b""
        assert served.log.spans() == [strange]


@pytest.mark.parametrize("reason", [LogFull("full"), LogUnavailable("away")])
async def test_g10_a_refusal_is_never_a_partial_success(reason: Retryable) -> None:
    """G10: clients must not retry after partial success, so overload is an error, bad spans or not."""
    async with serving() as served:
        served.log.fails = reason

        said = await export(served.target, body(span(1, 1), span(bytes(16), 2)))

        assert_refused(said)
        assert served.count("grpc", "refused") == 2
        assert served.count("grpc", "accepted") == 0


async def test_g11_the_python_exporter_waits_as_long_as_it_was_told() -> None:
    """G11: it reads RetryInfo from its own trailer only."""
    async with serving() as served:
        served.log.failures = [LogFull("full")]
        exporter = OTLPSpanExporter(endpoint=served.target, insecure=True)

        result = await through(exporter, sdk_spans(1))

        assert result is SpanExportResult.SUCCESS
        first, second = served.log.arrivals
        assert 1.0 <= second - first < 4.5


async def test_g12_overload_is_never_resource_exhausted() -> None:
    """G12: the Collector drops it without RetryInfo; it is said of too large requests alone."""
    async with serving() as served:
        served.log.fails = LogFull("full")

        said = await export(served.target, body(span()))

        assert said.code is not grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_g13_what_cannot_be_decoded_is_invalid_argument_with_bad_request() -> None:
    """G13: raw ff ff ff ff."""
    async with serving() as served:
        said = await export(served.target, b"\xff\xff\xff\xff")

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
        (RuntimeError("bug"), grpc.StatusCode.UNAVAILABLE),
        (KeyError("bug"), grpc.StatusCode.UNAVAILABLE),
        (OSError("disk"), grpc.StatusCode.UNAVAILABLE),
        (MemoryError(), grpc.StatusCode.UNAVAILABLE),
        (TimeoutError(), grpc.StatusCode.UNAVAILABLE),
        (LogFull("full"), grpc.StatusCode.UNAVAILABLE),
        (LogUnavailable("away"), grpc.StatusCode.UNAVAILABLE),
        (RecordTooLarge("big"), grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
)
async def test_g14_no_fault_of_the_log_leaks_unknown_or_internal(
    fault: Exception, code: grpc.StatusCode
) -> None:
    """G14: UNKNOWN and INTERNAL make the client throw the batch away."""
    async with serving() as served:
        served.log.fails = fault

        said = await export(served.target, body(span()))

        assert said.code is code


async def test_g14_a_failing_forward_changes_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    """G14: what stands behind the log cannot fail a request; it is complained about once."""

    def broken(sent: bytes) -> None:
        raise ValueError(sent)

    async with serving(forward=broken) as served:
        with caplog.at_level(logging.ERROR):
            said = [await export(served.target, body(span())) for _ in range(3)]

        assert {one.code for one in said} == {OK}
        assert [r.message for r in caplog.records] == ["the receiver failed on a request"]


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


async def test_g16_unknown_fields_are_kept_at_every_level() -> None:
    """G16: field 999 in the span, scope and resource; the tee gets the request as it came."""
    unknown = b"\xba\x3e\x03new"  # field 999
    one, other = (span(n).SerializeToString() + unknown for n in (1, 2))
    scope = b"".join(b"\x12" + bytes([len(s)]) + s for s in (one, other)) + unknown
    resource = b"\x12" + _length(scope) + scope + unknown
    sent = b"\x0a" + _length(resource) + resource + unknown
    teed: list[bytes] = []
    async with serving(forward=teed.append) as served:
        said = await export(served.target, sent)

        assert said.code is OK
        assert teed == [sent]
        assert [value(record).count(unknown) for record in served.log.written] == [3, 3]
        assert len(served.log.spans()) == 2


def _length(data: bytes) -> bytes:
    size = len(data)
    return bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])


@pytest.mark.parametrize("length", [0, 3, 8, 15, 17, 32])
async def test_g17_a_trace_id_of_another_length_rejects_its_span_alone(length: int) -> None:
    """G17."""
    async with serving() as served:
        said = await export(served.target, body(span(b"\x01" * length, 1), span(1, 2)))

        assert said.rejected == 1
        assert served.log.spans() == [span(1, 2)]


@pytest.mark.parametrize("bad", [b"", b"abc", b"\x01" * 7, b"\x01" * 9, b"\x01" * 16, bytes(8)])
async def test_g17_a_span_id_of_another_length_or_zero_rejects_its_span_alone(bad: bytes) -> None:
    """G17."""
    async with serving() as served:
        said = await export(served.target, body(span(1, bad), span(1, 2)))

        assert said.rejected == 1
        assert served.log.spans() == [span(1, 2)]


@pytest.mark.parametrize("parent", [b"", bytes(8), b"abc", b"\x01" * 16])
async def test_g17_a_strange_parent_never_rejects_a_span(parent: bytes) -> None:
    """G17: the parent is for the assembly to understand."""
    child = span()
    child.parent_span_id = parent
    async with serving() as served:
        said = await export(served.target, body(child))

        assert said.body == b""
        assert served.log.spans() == [child]


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 0), (2, 1), (0, 1), (9_214_646_400_000_000_000, 1), (2**64 - 1, 2**64 - 1)],
)
async def test_g18_no_time_rejects_a_span(start: int, end: int) -> None:
    """G18: zero, reversed, 1970, 2262, the largest."""
    strange = span()
    strange.start_time_unix_nano, strange.end_time_unix_nano = start, end
    async with serving() as served:
        said = await export(served.target, body(strange))

        assert said.body == b""
        assert served.log.spans() == [strange]


async def test_g19_unknown_kinds_and_flags_and_empty_names_are_kept() -> None:
    """G19: kind 99, all flag bits, no name."""
    plain = span()
    plain.name = ""
    plain.flags = 0xFFFFFFFF
    sent = request(plain).SerializeToString()
    kind = span(1, 2).SerializeToString() + b"\x30\x63"  # field 6 = 99
    scope = b"\x12" + bytes([len(kind)]) + kind
    resource = b"\x12" + _length(scope) + scope
    async with serving() as served:
        said = await export(served.target, sent + b"\x0a" + _length(resource) + resource)

        assert said.body == b""
        first, second = served.log.spans()
        assert first == plain
        assert int(second.kind) == 99


def _deep(levels: int) -> bytes:
    """A request whose only attribute is an array in an array in an array; protobuf itself would not build it."""
    value = AnyValue(string_value="x").SerializeToString()
    for _ in range(levels):
        values = b"\x0a" + _length(value) + value  # ArrayValue.values
        value = b"\x2a" + _length(values) + values  # AnyValue.array_value
    attribute = b"\x0a\x04deep\x12" + _length(value) + value
    nested = span().SerializeToString() + b"\x4a" + _length(attribute) + attribute
    scope = b"\x12" + _length(nested) + nested
    resource = b"\x12" + _length(scope) + scope
    return b"\x0a" + _length(resource) + resource


async def test_g20_a_nested_bomb_is_undecodable_and_harms_nothing() -> None:
    """G20: 120 nested arrays."""
    async with serving() as served:
        bomb = await export(served.target, _deep(120))
        fine = await export(served.target, _deep(20))

        assert bomb.code is grpc.StatusCode.INVALID_ARGUMENT
        assert fine.code is OK
        assert len(served.log.written) == 1


async def test_g20_invalid_utf8_in_a_string_is_undecodable() -> None:
    """G20: ff in a string."""
    sent = body(span(text="needle")).replace(b"needle", b"nee\xffle")
    async with serving() as served:
        said = await export(served.target, sent)

        assert said.code is grpc.StatusCode.INVALID_ARGUMENT
        assert served.log.written == []


async def test_g21_pings_are_tolerated() -> None:
    """G21: 20 pings without data, one after the other, far beyond grpc's default, bring no GOAWAY."""
    async with serving() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.receiver.grpc_port)
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(SETTINGS, b""))

        for number in range(20):
            writer.write(_frame(PING, struct.pack(">Q", number)))
            async with asyncio.timeout(10):
                while (kind := await _next_kind(reader)) != PING:
                    assert kind != GOAWAY, f"after {number} pings"

        writer.close()
        await writer.wait_closed()


SETTINGS, PING, GOAWAY = 4, 6, 7


async def _next_kind(reader: asyncio.StreamReader) -> int:
    """The kind of the next frame; a ping only if it acknowledges ours."""
    head = await reader.readexactly(9)
    await reader.readexactly(int.from_bytes(head[:3], "big"))
    return -1 if head[3] == PING and not head[4] & 1 else head[3]


def _frame(kind: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, 0]) + bytes(4) + payload


async def test_g22_a_connection_that_ages_out_loses_no_batch() -> None:
    """G22: age 180 s and 60 s grace by default; here 0.5 s, under load."""
    assert dict(options(MIB))["grpc.max_connection_age_ms"] == 180_000
    assert dict(options(MIB))["grpc.max_connection_age_grace_ms"] == 60_000
    log = FakeLog()
    intake = Intake(
        log=log, max_request=MIB, max_span=MIB, telemetry=Telemetry(), clock=lambda: 0.0
    )
    server = GrpcServer(
        intake,
        Bearer(()),
        host="127.0.0.1",
        port=0,
        max_request=MIB,
        tls=None,
        extra_options=(("grpc.max_connection_age_ms", 500),),
    )
    await server.start()
    states: set[grpc.ChannelConnectivity] = set()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        end = time.monotonic() + 1.5
        sent = 0
        while time.monotonic() < end:
            sent += 1
            assert (await call(channel, body(span(1, sent)))).code is OK
            await asyncio.sleep(0.02)
            states.add(channel.get_state())
    await server.stop(0)
    assert len(log.spans()) == sent
    assert states - {grpc.ChannelConnectivity.READY}, "the connection never aged"


async def test_g23_what_is_in_flight_finishes_and_new_calls_are_unavailable() -> None:
    """G23."""
    async with serving() as served, grpc.aio.insecure_channel(served.target) as channel:
        served.log.gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            early = group.create_task(call(channel, body(span(1, 1))))
            await until(lambda: served.log.waiting == 1)
            served.receiver.stop_accepting()
            refused = await call(channel, body(span(1, 2)))
            stopping = group.create_task(served.receiver.stop(5))
            served.log.gate.set()
        late = await export(served.target, body(span(1, 3)), timeout=2)

        assert stopping.done()
        assert early.result().code is OK
        assert_refused(refused)
        assert late.code is grpc.StatusCode.UNAVAILABLE
        assert served.log.spans() == [span(1, 1)]


async def test_g24_a_repeated_batch_is_accepted_again() -> None:
    """G24: duplicates come of retries; they are told apart by (trace id, span id) behind the log."""
    async with serving() as served:
        said = [await export(served.target, body(span())) for _ in range(2)]

        assert {one.code for one in said} == {OK}
        assert [record.key for record in served.log.written] == [trace_id(1)] * 2


async def test_g25_metrics_are_unimplemented() -> None:
    """G25: the Python metric exporter drops its batch."""
    async with serving() as served:
        service = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"

        result = await asyncio.to_thread(_send_no_metrics, served.target)
        said = await export(served.target, b"", method=service)

        assert result is MetricExportResult.FAILURE
        assert said.code is grpc.StatusCode.UNIMPLEMENTED


def _send_no_metrics(target: str) -> MetricExportResult:
    exporter = OTLPMetricExporter(endpoint=target, insecure=True)
    try:
        return exporter.export(MetricsData(resource_metrics=[]))  # pyright: ignore[reportUnknownMemberType] - its **kwargs
    finally:
        exporter.shutdown()  # pyright: ignore[reportUnknownMemberType] - its **kwargs


async def test_g26_health_is_told_and_watched() -> None:
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


async def test_g26_it_listens_on_loopback_unless_told_otherwise() -> None:
    """G26: default bind is localhost."""
    defaults = config.Receiver()

    assert (defaults.grpc.host, defaults.http.host) == ("127.0.0.1", "127.0.0.1")


async def test_g26_a_bad_token_is_unauthenticated() -> None:
    """G26: any of the tokens is accepted; none, a wrong one or another scheme is not."""
    async with serving(bearer_tokens=("one", "two")) as served:
        codes = {
            header: (
                await export(served.target, body(span()), metadata=[("authorization", header)])
            ).code
            for header in ("Bearer one", "bearer two", "Bearer three", "Basic one", "Bearer")
        }
        missing = await export(served.target, body(span()))
        health = await export(served.target, b"", method="/grpc.health.v1.Health/Check")

        denied = grpc.StatusCode.UNAUTHENTICATED
        assert list(codes.values()) == [OK, OK, denied, denied, denied]
        assert missing.code is denied
        assert health.code is OK
        assert served.count("grpc", "unauthenticated") == 4
        assert FORBIDDEN.isdisjoint(codes.values())


async def test_gzip_bytes_count_as_what_they_become() -> None:
    """G3: admission counts decompressed bytes."""
    sent = gzip.compress(body(span(text="a" * 500_000)))
    async with serving(max_request=MIB) as served:
        served.log.gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(export(served.target, sent))
            await until(lambda: served.log.waiting == 1)
            held = served.telemetry.registry.get_sample_value("spanwise_in_flight_bytes")
            served.log.gate.set()

        assert held is not None
        assert held >= 500_000

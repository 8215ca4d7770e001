"""OTLP over gRPC, what is accepted: rows G1 to G9 of the conformance table, by real exporters and a raw channel."""

import gzip
from functools import partial

import grpc
import grpc.aio
import pytest
import zstandard
from google.rpc.error_details_pb2 import RetryInfo
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from collector.config.tree import ReceiverConfig
from collector.receiver.grpc import options
from tests.support.http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    EXPORT,
    HEADERS,
    PREFACE,
    SETTINGS,
    frame,
    text,
)
from tests.support.otlp import body, request, span
from tests.support.receiving import (
    assert_refused,
    call,
    connected,
    export,
    exported,
    sdk_spans,
    serving,
    through,
)

OK = grpc.StatusCode.OK
MIB = 1 << 20


async def test_g1_the_python_exporter_reaches_export_with_nothing_but_an_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G1: TraceService/Export, default port 4317."""
    assert OTLPSpanExporter()._endpoint == "localhost:4317"
    assert ReceiverConfig().grpc.port == 4317
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
    said, served = await exported(sent, compression=compression)

    assert said.code is OK
    assert [record.value for record in served.log.written] == [sent]


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
    async with serving(max_item=16 * MIB) as served:
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
    said, served = await exported(
        body(span(text="a" * 64 * MIB)), compression=grpc.Compression.Gzip, max_request=MIB
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
    # An eighth is kept for the first request of another sender.
    sent = body(span(text="a" * (MIB * 17 // 20)))
    async with serving(max_request=MIB, max_item=MIB) as served:
        send = partial(export, served.target, sent, compression=compression)
        async with served.holding(*(send() for _ in range(4))) as held:
            one_more = await send()
        afterwards = await send()

        assert_refused(one_more)
        assert {task.result().code for task in held} == {OK}
        assert afterwards.code is OK
        assert served.counted("in_flight_bytes") == 0


async def test_g4_the_response_stays_small_however_many_spans_are_bad() -> None:
    """G4: 50,000 bad spans: an exact count and a message of at most 1 KiB with the first reasons."""
    bad = [span(bytes(16), 1)] * 50_000
    said, _ = await exported(body(*bad))

    assert said.code is OK
    assert len(said.body) < 4096
    assert said.rejected == 50_000
    message = said.response.partial_success.error_message
    assert len(message.encode()) <= 1024
    assert message.count("trace_id is all zeros") == 5


async def test_g5_calls_are_taken_concurrently() -> None:
    """G5: 64 calls on one channel are all in flight together."""
    async with serving() as served, grpc.aio.insecure_channel(served.target) as channel:
        calls = [call(channel, body(span(number))) for number in range(1, 65)]
        async with served.holding(*calls) as answers:
            pass

        assert {each.result().code for each in answers} == {OK}
        assert len(served.log.spans()) == 64


async def test_g6_ok_is_said_only_after_the_log_has_the_spans_and_without_partial_success() -> None:
    """G6; spans that are not in the log are not acknowledged."""
    async with serving() as served:
        async with served.holding(export(served.target, body(span()))) as (answer,):
            assert not answer.done()
            assert served.count("grpc", "accepted") == 0

        assert answer.result().code is OK
        assert not answer.result().response.HasField("partial_success")
        assert served.count("grpc", "accepted") == 1
        assert served.log.spans() == [span()]


@pytest.mark.parametrize("empty", [b"", request().SerializeToString(), b"\x0a\x00"])
async def test_g7_an_empty_request_is_a_success_and_counts_nothing(empty: bytes) -> None:
    """G7: 0 bytes; an envelope without spans."""
    said, served = await exported(empty)

    assert said.code is OK
    assert said.body == b""
    assert served.log.written == []
    assert served.count("grpc", "accepted") == 0


async def test_g8_good_spans_of_a_request_are_kept_and_bad_ones_counted_exactly() -> None:
    """G8: one good, one zero id, one id of 3 bytes."""
    said, served = await exported(body(span(1, 1), span(bytes(16), 2), span(1, b"abc")))

    assert said.code is OK
    assert said.rejected == 2
    assert "span_id has 3 bytes, not 8" in said.response.partial_success.error_message
    assert served.log.spans() == [span(1, 1)]
    assert served.count("grpc", "accepted") == 1
    assert served.count("grpc", "invalid") == 2


async def test_g8_a_single_span_above_its_limit_is_rejected_and_counted() -> None:
    """G8: windows.trace.max_bytes holds for a single span too."""
    said, served = await exported(body(span(1, 1), span(1, 2, text="a" * 1000)), max_item=1000)

    assert said.rejected == 1
    assert served.log.spans() == [span(1, 1)]
    assert served.count("grpc", "too_large") == 1


async def test_gzip_bytes_count_as_what_they_become() -> None:
    """G3: admission counts decompressed bytes."""
    sent = gzip.compress(body(span(text="a" * 500_000)))
    async with serving(max_request=MIB) as served, served.holding(export(served.target, sent)):
        assert served.counted("in_flight_bytes") >= 500_000


@pytest.mark.parametrize("encoding", ["zstd", "snappy"])
async def test_other_compression_over_grpc_ends_as_the_docs_say(encoding: str) -> None:
    """Where grpc takes one of them: docs/collector.md and docs/operate.md then say otherwise."""
    sent = _compressed_call(encoding)
    async with serving() as served, connected(served.receiver.grpc_port, sent) as (reader, _):
        got = b""
        while b"grpc-status" not in got:
            got += await reader.read(4096)

        assert b"grpc-status\x0213" in got
        assert b"Error parsing 'grpc-encoding' metadata" in got


def _compressed_call(encoding: str) -> bytes:
    """One export with that `grpc-encoding`, by hand: no client of Python sends it."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": EXPORT,
        ":authority": "x",
        "te": "trailers",
        "content-type": "application/grpc",
        "grpc-encoding": encoding,
    }
    block = b"".join(b"\0" + text(name) + text(value) for name, value in headers.items())
    message = zstandard.compress(body(span()))
    framed = b"\1" + len(message).to_bytes(4, "big") + message
    call = frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, END_STREAM, 1, framed)
    return PREFACE + frame(SETTINGS, 0, 0, b"") + call

"""OTLP over HTTP: rows H1 to H9 of the conformance table, with the real exporter and a raw client."""

import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from functools import partial

import httpx
import pytest
import zstandard
from google.rpc.error_details_pb2 import BadRequest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace.export import SpanExportResult

from collector.base.errors import LogFull, LogUnavailable, RecordTooLarge
from collector.config.tree import ReceiverConfig
from collector.receiver.answers import Code, http_status
from tests.support.otlp import body, request, span
from tests.support.otlp_http import JSON, PROTOBUF, head, one_span, post, status_of
from tests.support.receiving import connected, posted, sdk_spans, serving, through
from tests.support.table import for_each

MIB = 1 << 20


async def test_h1_the_python_exporter_reaches_v1_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: POST /v1/traces, default port 4318."""
    assert ReceiverConfig().http.port == 4318
    async with serving() as served:
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{served.receiver.http_port}"
        )

        result = await through(OTLPSpanExporter(), sdk_spans(3))

        assert result is SpanExportResult.SUCCESS
        assert len(served.log.spans()) == 3


async def test_h1_other_methods_are_405() -> None:
    """H1."""
    async with serving() as served, httpx.AsyncClient(verify=False) as client:
        for method in ("GET", "PUT", "DELETE", "HEAD", "OPTIONS"):
            reply = await client.request(method, served.url)
            assert reply.status_code == 405
            assert reply.headers["allow"] == "POST"


async def test_h1_more_paths_can_be_configured() -> None:
    """H1: a per-signal endpoint without a path posts to `/`, Langfuse's to a path of its own."""
    paths = ("/v1/traces", "/", "/api/public/otel/v1/traces")
    async with serving(paths=paths) as served:
        base = served.url.removesuffix("/v1/traces")

        replies = [await post(base + path, body(span())) for path in paths]

        assert {reply.status_code for reply in replies} == {200}


@pytest.mark.parametrize(
    ("media", "sent", "expected"),
    [
        ("application/x-protobuf", body(span()), 200),
        ("application/x-protobuf; charset=utf-8", body(span()), 200),
        ("application/protobuf", body(span()), 200),
        ("Application/JSON;charset=UTF-8", one_span(), 200),
        ("application/json", one_span(), 200),
        ("text/plain", one_span(), 415),
        ("application/grpc", body(span()), 415),
        ("", body(span()), 415),
    ],
)
async def test_h2_both_media_types_are_spoken_and_answered_in_kind(
    media: str, sent: bytes, expected: int
) -> None:
    """H2."""
    reply, served = await posted(sent, {"content-type": media})

    assert reply.status_code == expected
    if expected == 200:
        assert reply.headers["content-type"] == media.lower().partition(";")[0]
        assert len(served.log.spans()) == 1


async def test_h3_both_encodings_give_the_same_span_at_one_port() -> None:
    """H3."""
    same = request(span())
    plain = one_span(traceId=f"{1:032x}", spanId=f"{1:016x}")
    async with serving() as served:
        await post(served.url, same.SerializeToString())
        await post(served.url, plain, JSON)

        first, second = ((s.trace_id, s.span_id, s.name) for s in served.log.spans())
        assert first == second


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}


def in_two(compress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Two members or frames, one behind the other."""
    return lambda data: compress(data[:50]) + compress(data[50:])


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        *COMPRESS.items(),
        ("GZIP", in_two(gzip.compress)),
        ("deflate", partial(zlib.compress, wbits=-15)),
        ("zstd", in_two(zstandard.compress)),
        ("identity", bytes),
    ],
)
async def test_h4_compressed_bodies_are_inflated(
    encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    """H4."""
    sent = body(span(text="a" * 1000))
    reply, served = await posted(compress(sent), {**PROTOBUF, "content-encoding": encoding})

    assert reply.status_code == 200
    assert [r.SerializeToString() for r in served.log.requests()] == [sent]


async def test_h4_the_python_exporter_with_gzip() -> None:
    """H4."""
    async with serving() as served:
        exporter = OTLPSpanExporter(endpoint=served.url, compression=Compression.Gzip)

        result = await through(exporter, sdk_spans(20))

        assert result is SpanExportResult.SUCCESS
        assert len(served.log.spans()) == 20


@pytest.mark.parametrize("encoding", COMPRESS)
async def test_h4_a_bomb_is_413(encoding: str) -> None:
    """H4: the limit holds after decompression."""
    bomb = COMPRESS[encoding](bytes(64 * MIB))
    reply, served = await posted(bomb, {**PROTOBUF, "content-encoding": encoding}, max_request=MIB)

    assert reply.status_code == 413
    assert served.count("http", "too_large") == 1


@pytest.mark.parametrize("encoding", COMPRESS)
async def test_h4_a_broken_or_cut_off_compressed_body_is_400(encoding: str) -> None:
    """H4."""
    packed = COMPRESS[encoding](body(span(text="abc" * 99)))
    headers = {**PROTOBUF, "content-encoding": encoding}
    async with serving() as served:
        cut_off = await post(served.url, packed[:-12], headers)
        broken = await post(served.url, b"\x00\x01\x02\x03 not it", headers)
        unknown = await post(served.url, b"", {**PROTOBUF, "content-encoding": "br"})

        assert (cut_off.status_code, broken.status_code, unknown.status_code) == (400, 400, 415)
        assert served.log.written == []


async def test_h4_a_body_above_the_limit_is_413() -> None:
    """H4: 65 MiB against the default."""
    reply, served = await posted(bytes(65 * MIB))

    assert reply.status_code == 413
    assert served.count("http", "too_large") == 1


async def test_h5_chunked_bodies_are_taken_and_limited_while_they_stream() -> None:
    """H5: Node always sends chunked; the answer does not wait for the end of what is too large."""

    async def good() -> AsyncIterator[bytes]:
        for byte in body(span()):
            yield bytes([byte])

    async with serving(max_request=100_000) as served:
        fine = await post(served.url, good())
        chunk = b"3e8\r\n" + bytes(1000) + b"\r\n"
        unended = head("transfer-encoding: chunked") + 101 * chunk
        async with connected(served.receiver.http_port, unended) as (reader, _):
            first = await reader.readline()

        assert fine.status_code == 200
        assert first.startswith(b"HTTP/1.1 413")


async def test_h6_success_is_200_with_partial_success_unset_or_exact() -> None:
    """H6: JSON `{}`; rejectedSpans as a string."""
    async with serving() as served:
        binary = await post(served.url, body(span()))
        full = await post(served.url, one_span(), JSON)
        partial = await post(served.url, one_span(spanId="00" * 8), JSON)
        partial_binary = await post(served.url, body(span(1, b"abc"), span()))

        assert (binary.status_code, binary.content) == (200, b"")
        assert (full.status_code, full.json()) == (200, {})
        answered = partial.json()["partialSuccess"]
        assert answered["rejectedSpans"] == "1"
        assert "span_id is all zeros" in answered["errorMessage"]
        answer = ExportTraceServiceResponse.FromString(partial_binary.content)
        assert answer.partial_success.rejected_spans == 1


@pytest.mark.parametrize("headers", [PROTOBUF, JSON])
async def test_h7_errors_are_a_status_in_the_encoding_of_the_request(
    headers: dict[str, str],
) -> None:
    """H7: message set; 400 carries BadRequest."""
    reply, _ = await posted(b"\xff\xff\xff", headers)

    assert reply.status_code == 400
    answered = status_of(reply)
    detail = BadRequest()
    assert answered.code == 3
    assert answered.message
    assert answered.details[0].Unpack(detail)
    assert detail.field_violations[0].description == answered.message


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (LogFull("full"), 503),
        (LogUnavailable("away"), 503),
        (RuntimeError("bug"), 503),
        (RecordTooLarge("big"), 413),
    ],
)
async def test_h8_overload_and_own_faults_are_503_with_retry_after(
    fault: Exception, code: int
) -> None:
    """H8: only 429, 502, 503 and 504 are retried."""
    async with serving() as served:
        served.log.fails = fault

        reply = await post(served.url, body(span()))

        assert reply.status_code == code
        if code == 503:
            assert 1 <= int(reply.headers["retry-after"]) <= 4
            assert served.count("http", "refused") == 1


async def test_h8_the_python_exporter_tries_again_after_503() -> None:
    """H8."""
    async with serving() as served:
        served.log.write_failures = [LogFull("full")]

        result = await through(OTLPSpanExporter(endpoint=served.url), sdk_spans(2))

        assert result is SpanExportResult.SUCCESS
        assert len(served.log.spans()) == 2


@for_each(
    ("code", "status"),
    [
        (Code.OK, 200),
        (Code.CANCELLED, 503),
        (Code.DEADLINE_EXCEEDED, 503),
        (Code.ABORTED, 503),
        (Code.OUT_OF_RANGE, 503),
        (Code.UNAVAILABLE, 503),
        (Code.DATA_LOSS, 503),
        (Code.RESOURCE_EXHAUSTED, 429),
        (Code.INVALID_ARGUMENT, 400),
        (Code.UNAUTHENTICATED, 401),
        (Code.PERMISSION_DENIED, 403),
        (Code.UNIMPLEMENTED, 404),
        (Code.UNKNOWN, 500),
        (Code.INTERNAL, 500),
        (Code.NOT_FOUND, 500),
        (Code.ALREADY_EXISTS, 500),
        (Code.FAILED_PRECONDITION, 500),
    ],
)
def test_h9_every_grpc_code_has_its_http_status(code: Code, status: int) -> None:
    """H9: the Collector's map."""
    assert http_status(code) == status

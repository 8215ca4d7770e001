"""OTLP over HTTP: rows H1 to H9 of the conformance table, with the real exporter and a raw client."""

import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import httpx
import pytest
import zstandard
from google.rpc.error_details_pb2 import BadRequest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from collector.base.errors import LogFull
from collector.config.tree import ReceiverConfig
from collector.receiver.answers import Code, http_status
from collector.records.feedback import FeedbackRules
from tests.support.otlp import JSON, PROTOBUF, body, head, one_span, post, span, status_of
from tests.support.receiving import connected, posted, sdk_spans, serving, through
from tests.support.table import for_each

MIB = 1 << 20


@pytest.mark.parametrize("settings", [{}, {"compression": Compression.Gzip}])
async def test_the_python_exporter_needs_nothing_but_an_endpoint_and_comes_again_after_503(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """H1: POST /v1/traces, default port 4318. H4, H8."""
    assert ReceiverConfig().http.port == 4318
    async with serving() as served:
        url = served.url.removesuffix("/v1/traces")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        served.log.write_failures = [LogFull("full")]

        result = await through(OTLPSpanExporter(**settings), sdk_spans(3))

        assert result is SpanExportResult.SUCCESS
        assert len(served.log.spans()) == 3


async def test_h1_more_paths_can_be_configured_and_langfuses_is() -> None:
    """H1: a per-signal endpoint without a path posts to `/`, Langfuse's to a path of its own."""
    paths = (*ReceiverConfig().http.paths, "/")
    async with serving(paths=paths) as served:
        base = served.url.removesuffix("/v1/traces")

        replies = [await post(base + path, body(span())) for path in paths]

        assert {*paths} > {"/v1/traces", "/api/public/otel/v1/traces"}
        assert {reply.status_code for reply in replies} == {200}


async def test_h1_other_methods_are_405() -> None:
    """H1."""
    async with (
        serving(feedback=FeedbackRules()) as served,
        httpx.AsyncClient(verify=False) as client,
    ):
        for method in ("GET", "PUT", "DELETE", "HEAD", "OPTIONS"):
            for path in ("/v1/traces", "/v1/feedback"):
                reply = await client.request(method, served.url.replace("/v1/traces", path))
                assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


@for_each(
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


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}


def in_two(compress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Two members or frames, one behind the other."""
    return lambda data: compress(data[:50]) + compress(data[50:])


@for_each(
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


async def test_h4_the_limit_holds_after_decompression_and_what_is_broken_is_400() -> None:
    """H4: 65 MiB against the default, and as many packed."""
    packed = PROTOBUF | {"content-encoding": "gzip"}
    async with serving() as served:
        large = await post(served.url, bytes(65 * MIB))
        bomb = await post(served.url, gzip.compress(bytes(65 * MIB), 1), packed)
        cut_off = await post(served.url, gzip.compress(body(span()))[:-12], packed)
        unknown = await post(served.url, b"", PROTOBUF | {"content-encoding": "br"})

        assert (large.status_code, bomb.status_code) == (413, 413)
        assert (cut_off.status_code, unknown.status_code) == (400, 415)
        assert served.count("http", "too_large") == 2
        assert served.log.written == []


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


async def test_h6_partial_success_in_json_counts_in_a_string() -> None:
    """H6."""
    async with serving() as served:
        full = await post(served.url, one_span(), JSON)
        partial = await post(served.url, one_span(spanId="00" * 8), JSON)

        assert (full.status_code, full.json()) == (200, {})
        answered = partial.json()["partialSuccess"]
        assert answered["rejectedSpans"] == "1"
        assert "span_id is all zeros" in answered["errorMessage"]


def test_h9_every_grpc_code_has_its_http_status() -> None:
    """H9: the Collector's map."""
    passing = (Code.CANCELLED, Code.DEADLINE_EXCEEDED, Code.ABORTED, Code.OUT_OF_RANGE)
    expected = {
        Code.OK: 200,
        **dict.fromkeys((*passing, Code.UNAVAILABLE, Code.DATA_LOSS), 503),
        Code.RESOURCE_EXHAUSTED: 429,
        Code.INVALID_ARGUMENT: 400,
        Code.UNAUTHENTICATED: 401,
        Code.PERMISSION_DENIED: 403,
        Code.UNIMPLEMENTED: 404,
    }

    assert {each: http_status(each) for each in Code} == dict.fromkeys(Code, 500) | expected

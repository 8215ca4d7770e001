"""OTLP over HTTP, row by row of specs/otlp.md, section 1.2."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import zstandard
from google.protobuf.json_format import Parse
from google.rpc.error_details_pb2 import BadRequest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace.export import SpanExportResult

from collector import config
from collector.errors import LogFull, LogUnavailable, RecordTooLarge
from collector.receiver.answers import Code, http_status
from collector.receiver.auth import Bearer
from collector.receiver.http import HttpApp
from collector.receiver.http_server import BoundedProtocol, HttpServer
from collector.receiver.intake import Intake
from collector.telemetry import Telemetry
from tests.support.fake_log import FakeLog
from tests.support.otlp import body, request, span
from tests.support.receiving import sdk_spans, serving, through, until

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
MIB = 1 << 20
ID = "0af7651916cd43dd8448eb211c80319c"


async def post(
    url: str, content: bytes | AsyncIterator[bytes], headers: dict[str, str] | None = None
) -> httpx.Response:
    async with httpx.AsyncClient(timeout=20) as client:
        return await client.post(
            url, content=content, headers=PROTOBUF if headers is None else headers
        )


def one_span(**fields: Any) -> bytes:
    """OTLP/JSON of one span."""
    plain = {"traceId": ID, "spanId": "b7ad6b7169203331", "name": "step", **fields}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [plain]}]}]}).encode()


def status_of(reply: httpx.Response) -> Status:
    """The google.rpc.Status in the encoding that the reply names."""
    if reply.headers["content-type"] == JSON["content-type"]:
        return Parse(reply.text, Status())
    assert reply.headers["content-type"] == PROTOBUF["content-type"]
    return Status.FromString(reply.content)


# --- protocol -----------------------------------------------------------------------------------------------------


async def test_h1_the_python_exporter_reaches_v1_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: POST /v1/traces, default port 4318."""
    assert config.Receiver().http.port == 4318
    async with serving() as served:
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{served.receiver.http_port}"
        )

        result = await through(OTLPSpanExporter(), sdk_spans(3))

        assert result is SpanExportResult.SUCCESS
        assert len(served.log.spans()) == 3


async def test_h1_other_methods_are_405_and_other_paths_404() -> None:
    """H1."""
    async with serving() as served, httpx.AsyncClient() as client:
        for method in ("GET", "PUT", "DELETE", "HEAD", "OPTIONS"):
            reply = await client.request(method, served.url)
            assert reply.status_code == 405
            assert reply.headers["allow"] == "POST"
        elsewhere = await client.post(served.url + "x", content=b"", headers=JSON)

        assert elsewhere.status_code == 404
        assert status_of(elsewhere).message == "no such path"


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
    async with serving() as served:
        reply = await post(served.url, sent, {"content-type": media})

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

        first, second = served.log.spans()
        assert (first.trace_id, first.span_id, first.name) == (
            second.trace_id,
            second.span_id,
            second.name,
        )


def two_members(data: bytes) -> bytes:
    return gzip.compress(data[:50]) + gzip.compress(data[50:])


def bare_deflate(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-15)


def two_frames(data: bytes) -> bytes:
    return zstandard.compress(data[:50]) + zstandard.compress(data[50:])


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("GZIP", two_members),
        ("deflate", zlib.compress),
        ("deflate", bare_deflate),
        ("zstd", zstandard.compress),
        ("zstd", two_frames),
        ("identity", bytes),
    ],
)
async def test_h4_compressed_bodies_are_inflated(
    encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    """H4."""
    sent = body(span(text="a" * 1000))
    async with serving() as served:
        reply = await post(served.url, compress(sent), {**PROTOBUF, "content-encoding": encoding})

        assert reply.status_code == 200
        assert [r.SerializeToString() for r in served.log.requests()] == [sent]


async def test_h4_the_python_exporter_with_gzip() -> None:
    """H4."""
    async with serving() as served:
        exporter = OTLPSpanExporter(endpoint=served.url, compression=Compression.Gzip)

        result = await through(exporter, sdk_spans(20))

        assert result is SpanExportResult.SUCCESS
        assert len(served.log.spans()) == 20


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
async def test_h4_a_bomb_is_413(encoding: str) -> None:
    """H4: the limit holds after decompression."""
    compress = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}[
        encoding
    ]
    async with serving(max_request=MIB) as served:
        reply = await post(
            served.url, compress(bytes(64 * MIB)), {**PROTOBUF, "content-encoding": encoding}
        )

        assert reply.status_code == 413
        assert served.count("http", "too_large") == 1


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
async def test_h4_a_broken_or_cut_off_compressed_body_is_400(encoding: str) -> None:
    """H4."""
    compress = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}[
        encoding
    ]
    headers = {**PROTOBUF, "content-encoding": encoding}
    async with serving() as served:
        cut_off = await post(served.url, compress(body(span(text="abc" * 99)))[:-12], headers)
        broken = await post(served.url, b"\x00\x01\x02\x03 not it", headers)
        unknown = await post(served.url, b"", {**PROTOBUF, "content-encoding": "br"})

        assert (cut_off.status_code, broken.status_code, unknown.status_code) == (400, 400, 415)
        assert served.log.written == []


async def test_h4_a_body_above_the_limit_is_413() -> None:
    """H4: 65 MiB against the default."""
    async with serving() as served:
        reply = await post(served.url, bytes(65 * MIB))

        assert reply.status_code == 413
        assert served.count("http", "too_large") == 1


async def test_h5_chunked_bodies_are_taken_and_limited_while_they_stream() -> None:
    """H5: Node always sends chunked; the answer does not wait for the end of what is too large."""

    async def good() -> AsyncIterator[bytes]:
        for byte in body(span()):
            yield bytes([byte])

    async with serving(max_request=100_000) as served:
        fine = await post(served.url, good())
        reader, writer = await asyncio.open_connection("127.0.0.1", served.receiver.http_port)
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        for _ in range(101):  # never ended
            writer.write(b"3e8\r\n" + bytes(1000) + b"\r\n")
        async with asyncio.timeout(10):
            first = await reader.readline()
        writer.close()
        await writer.wait_closed()

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
        told = partial.json()["partialSuccess"]
        assert told["rejectedSpans"] == "1"
        assert "span_id is all zeros" in told["errorMessage"]
        answer = ExportTraceServiceResponse.FromString(partial_binary.content)
        assert answer.partial_success.rejected_spans == 1


@pytest.mark.parametrize("headers", [PROTOBUF, JSON])
async def test_h7_errors_are_a_status_in_the_encoding_of_the_request(
    headers: dict[str, str],
) -> None:
    """H7: message set; 400 carries BadRequest."""
    async with serving() as served:
        reply = await post(served.url, b"\xff\xff\xff", headers)

        assert reply.status_code == 400
        told = status_of(reply)
        detail = BadRequest()
        assert told.code == 3
        assert told.message
        assert told.details[0].Unpack(detail)
        assert detail.field_violations[0].description == told.message


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
        served.log.failures = [LogFull("full")]

        result = await through(OTLPSpanExporter(endpoint=served.url), sdk_spans(2))

        assert result is SpanExportResult.SUCCESS
        assert len(served.log.spans()) == 2


@pytest.mark.parametrize(
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


# --- slow and many ------------------------------------------------------------------------------------------------


class Hasty(BoundedProtocol):
    """Half a tenth of a second for the head of a request."""

    head_timeout = 0.05


async def test_h10_a_slow_loris_is_cut_off() -> None:
    """H10: a connection that never ends its head is closed, also when it is used again."""
    async with _server(Hasty, body_timeout=60) as (server, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/traces HTTP/1.1\r\nhost:")
        async with asyncio.timeout(5):
            rest = await reader.read()
        writer.close()
        again, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n"
            b"content-type: application/x-protobuf\r\n\r\nPOST"
        )
        async with asyncio.timeout(5):
            answered = await again.read()
        writer.close()

        assert rest == b""
        assert answered.startswith(b"HTTP/1.1 200")


async def test_h10_a_body_that_does_not_come_is_refused_in_time() -> None:
    """H10: the bytes it held are given back."""
    async with _server(BoundedProtocol, body_timeout=0.05) as (server, telemetry):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n"
            b"content-type: application/x-protobuf\r\n\r\nabc"
        )
        async with asyncio.timeout(5):
            first = await reader.readline()
        writer.close()

        assert first.startswith(b"HTTP/1.1 503")
        assert telemetry.registry.get_sample_value("spanwise_in_flight_bytes") == 0


@asynccontextmanager
async def _server(
    protocol: type[BoundedProtocol], *, body_timeout: float
) -> AsyncGenerator[tuple[HttpServer, Telemetry]]:
    telemetry = Telemetry()
    intake = Intake(
        log=FakeLog(),
        max_request=MIB,
        max_span=MIB,
        telemetry=telemetry,
        clock=lambda: 0.0,
        body_timeout=body_timeout,
    )
    app = HttpApp(intake, Bearer(()), paths=["/v1/traces"])
    server = HttpServer(app, host="127.0.0.1", port=0, tls=None, protocol=protocol)
    await server.start()
    yield server, telemetry
    await server.stop(0.1)


async def test_h10_bytes_of_unfinished_bodies_count_as_in_flight() -> None:
    """H10: many slow senders cannot add up."""
    async with serving(max_request=MIB) as served:
        writers: list[asyncio.StreamWriter] = []
        for _ in range(4):
            _, writer = await asyncio.open_connection("127.0.0.1", served.receiver.http_port)
            writer.write(
                b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n"
                b"content-type: application/x-protobuf\r\n\r\n" + bytes(900_000)
            )
            writers.append(writer)
        held = served.telemetry.registry.get_sample_value
        await until(lambda: (held("spanwise_in_flight_bytes") or 0) >= 3_600_000)

        reply = await post(served.url, bytes(900_000))

        assert reply.status_code == 503
        for writer in writers:
            writer.close()
        await until(lambda: held("spanwise_in_flight_bytes") == 0)


async def test_h10_connections_are_kept_alive() -> None:
    """H10."""
    async with serving() as served, httpx.AsyncClient() as client:
        for _ in range(3):
            reply = await client.post(served.url, content=body(span()), headers=PROTOBUF)
            assert reply.status_code == 200
            assert "connection" not in reply.headers


async def test_h11_there_is_no_cors() -> None:
    """H11: left out until asked for (DESIGN, section 6): a preflight gets 405 and no permission."""
    async with serving() as served, httpx.AsyncClient() as client:
        reply = await client.options(
            served.url,
            headers={"origin": "http://x", "access-control-request-method": "POST"},
        )

        assert reply.status_code == 405
        assert not [name for name in reply.headers if name.startswith("access-control")]


# --- OTLP/JSON ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [ID.lower(), ID.upper(), ID[:16].upper() + ID[16:]])
async def test_j1_ids_are_hex_in_any_case(text: str) -> None:
    """J1: links too."""
    async with serving() as served:
        sent = one_span(traceId=text, parentSpanId="B7ad6b7169203332", links=[{"traceId": text}])

        reply = await post(served.url, sent, JSON)

        (got,) = served.log.spans()
        assert reply.json() == {}
        assert got.trace_id.hex() == ID
        assert got.parent_span_id.hex() == "b7ad6b7169203332"
        assert got.links[0].trace_id.hex() == ID


@pytest.mark.parametrize(
    "fields",
    [{"traceId": ID[:31]}, {"traceId": "x" * 32}, {"traceId": ""}, {"spanId": "not hex at all!!"}],
)
async def test_j1_an_id_that_is_not_hex_rejects_its_span(fields: dict[str, str]) -> None:
    """J1."""
    async with serving() as served:
        reply = await post(served.url, one_span(**fields), JSON)

        assert reply.status_code == 200
        assert reply.json()["partialSuccess"]["rejectedSpans"] == "1"
        assert served.log.written == []


async def test_j1_other_bytes_are_base64() -> None:
    """J1."""
    attribute = {"key": "raw", "value": {"bytesValue": "+/8="}}
    async with serving() as served:
        await post(served.url, one_span(attributes=[attribute]), JSON)

        assert served.log.spans()[0].attributes[0].value.bytes_value == b"\xfb\xff"


@pytest.mark.parametrize(
    ("kind", "status"), [(2, 200), (99, 200), ("SPAN_KIND_SERVER", 400), ("2", 400), (1.5, 400)]
)
async def test_j2_enums_are_numbers_only(kind: Any, status: int) -> None:
    """J2."""
    async with serving() as served:
        reply = await post(served.url, one_span(kind=kind), JSON)

        assert reply.status_code == status
        assert [int(s.kind) for s in served.log.spans()] == ([kind] if status == 200 else [])


async def test_j3_unknown_fields_are_ignored_at_every_level() -> None:
    """J3."""
    new: dict[str, Any] = {"futureField": {"x": [1]}}
    attribute = {"key": "k", "value": {"stringValue": "v", **new}, **new}
    plain = {"traceId": ID, "spanId": "b7ad6b7169203331", "attributes": [attribute], **new}
    scope = {"scope": {"name": "s", **new}, "spans": [plain], **new}
    resource = {"resource": {"attributes": [attribute], **new}, "scopeSpans": [scope], **new}
    sent = json.dumps({"resourceSpans": [resource], **new}).encode()
    async with serving() as served:
        reply = await post(served.url, sent, JSON)

        assert reply.json() == {}
        assert served.log.spans()[0].attributes[0].value.string_value == "v"


async def test_j4_snake_case_is_not_the_field() -> None:
    """J4: ignored as unknown: zero spans, success."""
    async with serving() as served:
        reply = await post(
            served.url, one_span().replace(b"resourceSpans", b"resource_spans"), JSON
        )

        assert (reply.status_code, reply.json()) == (200, {})
        assert served.log.written == []


@pytest.mark.parametrize("number", ["5", 5, 5.0, "-9223372036854775808", 9007199254740991])
async def test_j5_integers_are_strings_or_numbers(number: Any) -> None:
    """J5."""
    attribute = {"key": "n", "value": {"intValue": number}}
    async with serving() as served:
        sent = one_span(attributes=[attribute], startTimeUnixNano="1760000000000000000")

        reply = await post(served.url, sent, JSON)

        assert reply.json() == {}
        (got,) = served.log.spans()
        assert got.attributes[0].value.int_value == int(number)
        assert got.start_time_unix_nano == 1_760_000_000_000_000_000


@pytest.mark.parametrize("number", ["five", "1e3", True, "9223372036854775808", 0.5, [], ""])
async def test_j5_what_is_not_an_integer_is_400(number: Any) -> None:
    """J5."""
    attribute = {"key": "n", "value": {"intValue": number}}
    async with serving() as served:
        reply = await post(served.url, one_span(attributes=[attribute]), JSON)

        assert reply.status_code == 400
        assert "intValue" in reply.json()["message"]


async def test_j6_nan_and_null_as_protobuf_json_has_them() -> None:
    """J6: "NaN" and "Infinity" are legal, null is absent."""
    values = [{"doubleValue": "NaN"}, {"doubleValue": "-Infinity"}, {"doubleValue": 1}]
    attributes = [{"key": "d", "value": value} for value in values]
    async with serving() as served:
        reply = await post(served.url, one_span(attributes=attributes, status=None), JSON)

        assert reply.json() == {}
        (got,) = served.log.spans()
        nan, infinite, one = (a.value.double_value for a in got.attributes)
        assert nan != nan  # noqa: PLR0124 - what NaN is
        assert (infinite, one) == (float("-inf"), 1.0)
        assert not got.HasField("status")


@pytest.mark.parametrize(
    "sent",
    [
        b'{"resourceSpans": NaN}',
        b'{"resourceSpans": [], "resourceSpans": []}',
        b'{"resourceSpans": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}",
        b'{"resourceSpans": {}}',
        b'{"resourceSpans": ["x"]}',
        b"[]",
        b"",
        b"{",
        b"\xff{}",
        b'{"resourceSpans": [{"schemaUrl": "\\ud800"}]}',
        one_span(attributes=[{"key": "two", "value": {"intValue": 1, "boolValue": True}}]),
    ],
)
async def test_j6_what_is_not_json_or_not_otlp_is_400(sent: bytes) -> None:
    """J6: bare NaN, duplicate keys, nesting bombs, wrong shapes, lone surrogates, two values of one."""
    async with serving() as served:
        reply = await post(served.url, sent, JSON)

        assert reply.status_code == 400
        assert served.log.written == []
        assert served.count("http", "invalid") == 1


async def test_j6_values_are_nested_to_a_limit() -> None:
    """J6: as deep as protobuf itself goes, no deeper."""

    def nested(levels: int) -> bytes:
        value: dict[str, Any] = {"stringValue": "x"}
        for _ in range(levels):
            value = {"arrayValue": {"values": [value]}}
        return one_span(attributes=[{"key": "deep", "value": value}])

    async with serving() as served:
        fine = await post(served.url, nested(20), JSON)
        bomb = await post(served.url, nested(60), JSON)

        assert (fine.status_code, bomb.status_code) == (200, 400)


# --- stopping and tokens ------------------------------------------------------------------------------------------


async def test_what_is_in_flight_finishes_and_new_requests_get_503() -> None:
    """G23, over HTTP."""
    async with serving() as served:
        served.log.gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            early = group.create_task(post(served.url, body(span(1, 1))))
            await until(lambda: served.log.waiting == 1)
            served.receiver.stop_accepting()
            refused = await post(served.url, body(span(1, 2)))
            stopping = group.create_task(served.receiver.stop(5))
            served.log.gate.set()

        assert stopping.done()
        assert early.result().status_code == 200
        assert refused.status_code == 503
        assert "retry-after" in refused.headers
        assert served.log.spans() == [span(1, 1)]


async def test_a_bad_token_is_401() -> None:
    """G26, over HTTP."""
    async with serving(bearer_tokens=("one",)) as served:
        good = await post(served.url, body(span()), {**PROTOBUF, "authorization": "Bearer one"})
        wrong = await post(served.url, body(span()), {**PROTOBUF, "authorization": "Bearer two"})
        missing = await post(served.url, one_span(), JSON)

        assert (good.status_code, wrong.status_code, missing.status_code) == (200, 401, 401)
        assert missing.headers["www-authenticate"] == "Bearer"
        assert status_of(missing).code == 16
        assert served.count("http", "unauthenticated") == 2

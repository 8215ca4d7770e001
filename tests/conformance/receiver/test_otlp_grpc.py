"""OTLP over gRPC: rows G1 to G5, G11, G15 to G20 of the conformance table, by a real exporter and a raw channel."""

from functools import partial
from typing import Any

import grpc
import grpc.aio
import pytest
import zstandard
from google.rpc.error_details_pb2 import RetryInfo
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace.export import SpanExportResult

from collector.base.errors import LogFull
from collector.config.tree import ReceiverConfig
from collector.otlp.sent_form import as_sent
from collector.receiver.grpc import options
from tests.support.hostile import field_of
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
from tests.support.otlp import body, length, span
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
from tests.support.table import for_each

OK = grpc.StatusCode.OK
MIB = 1 << 20


@pytest.mark.parametrize("settings", [{}, {"compression": grpc.Compression.Gzip}])
async def test_the_python_exporter_needs_nothing_but_an_endpoint_and_waits_as_it_is_asked_to(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """G1: TraceService/Export, default port 4317. G2. G11: it reads RetryInfo from its own trailer only. G15."""
    assert OTLPSpanExporter()._endpoint == "localhost:4317"
    assert ReceiverConfig().grpc.port == 4317
    async with serving() as served:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{served.target}")
        served.log.write_failures = [LogFull("full")]

        result = await through(OTLPSpanExporter(**settings), sdk_spans(3))

        assert result is SpanExportResult.SUCCESS
        assert [s.name for s in served.log.spans()] == ["step 0", "step 1", "root"]
        first, second = served.log.arrivals
        assert second - first >= 1.0


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


async def test_g5_calls_are_taken_concurrently() -> None:
    """G5: 64 calls on one channel are all in flight together."""
    async with serving() as served, grpc.aio.insecure_channel(served.target) as channel:
        calls = [call(channel, body(span(number))) for number in range(1, 65)]
        async with served.holding(*calls) as answers:
            pass

        assert {each.result().code for each in answers} == {OK}
        assert len(served.log.spans()) == 64


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


async def test_g16_unknown_fields_are_kept_at_every_level() -> None:
    """G16: field 999 in the span, scope and resource; the backend under `forward` gets them too."""
    unknown = b"\xba\x3e\x03new"  # field 999
    one, other = (span(n).SerializeToString() + unknown for n in (1, 2))
    scope = b"".join(b"\x12" + bytes([len(s)]) + s for s in (one, other)) + unknown
    resource = b"\x12" + length(scope) + scope + unknown
    sent = b"\x0a" + length(resource) + resource + unknown
    said, served = await exported(sent)

    assert said.code is OK
    assert [record.value.count(unknown) for record in served.log.written] == [3, 3]
    assert len(served.log.spans()) == 2
    assert [as_sent(record.value).spans for record in served.log.written] == [
        record.value for record in served.log.written
    ]


def strange(**fields: Any) -> Span:
    made = span()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@for_each(
    "sent",
    [
        *(strange(parent_span_id=each) for each in (b"", bytes(8), b"abc", b"\x01" * 16)),
        *(
            strange(start_time_unix_nano=start, end_time_unix_nano=end)
            for start, end in (
                *((0, 0), (2, 1), (0, 1), (9_214_646_400_000_000_000, 1)),
                (2**64 - 1, 2**64 - 1),
            )
        ),
        *(strange(kind=99), strange(flags=0xFFFFFFFF), strange(name="")),
    ],
)
async def test_no_parent_time_kind_flag_or_name_rejects_a_span_or_is_warned_of(sent: Span) -> None:
    """G17 to G19; G9: the Python SDK would log each warning."""
    said, served = await exported(body(sent))

    assert said.body == b""
    assert served.log.spans() == [sent]


@pytest.mark.parametrize("depth", [20, 48, 49, 50, 120])
async def test_a_value_nested_too_deeply_refuses_its_span_alone(depth: int) -> None:
    """G20: from 48 lists on for a parser of the request, from 50 on for one of the span alone."""
    value = b""
    for _ in range(depth):
        value = field_of(5, field_of(1, value))
    attribute = field_of(9, field_of(1, b"deep") + field_of(2, value))
    deep = span(1, 2).SerializeToString() + attribute
    spans = (span(1, 1).SerializeToString(), deep, span(2, 3).SerializeToString())
    request = field_of(1, field_of(2, b"".join(field_of(2, each) for each in spans)))
    said, served = await exported(request)

    refused = depth > 20
    assert (said.code, said.rejected) == (OK, refused)
    assert served.count("grpc", "accepted") == 3 - refused
    assert served.count("grpc", "invalid") == refused

"""OTLP over gRPC, strange spans: rows G16 to G19 of the conformance table."""

import grpc
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.sent_form import as_sent
from tests.support.otlp import body, length, request, span
from tests.support.receiving import exported

OK = grpc.StatusCode.OK


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


@pytest.mark.parametrize(
    "bad",
    [
        *[span(b"\x01" * length, 1) for length in (0, 3, 8, 15, 17, 32)],
        *[span(1, b"\x01" * length) for length in (0, 3, 7, 9, 16)],
        span(1, bytes(8)),
    ],
)
async def test_g17_an_id_of_another_length_or_zero_rejects_its_span_alone(bad: Span) -> None:
    """G17."""
    said, served = await exported(body(bad, span(1, 2)))

    assert said.rejected == 1
    assert served.log.spans() == [span(1, 2)]


@pytest.mark.parametrize("parent", [b"", bytes(8), b"abc", b"\x01" * 16])
async def test_g17_a_strange_parent_never_rejects_a_span(parent: bytes) -> None:
    """G17: the parent is for the assembly to understand."""
    child = span()
    child.parent_span_id = parent
    said, served = await exported(body(child))

    assert said.body == b""
    assert served.log.spans() == [child]


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 0), (2, 1), (0, 1), (9_214_646_400_000_000_000, 1), (2**64 - 1, 2**64 - 1)],
)
async def test_g9_g18_no_time_rejects_a_span_or_is_warned_of(start: int, end: int) -> None:
    """G18: zero, reversed, 1970, 2262, the largest. G9: the Python SDK would log each warning."""
    strange = span()
    strange.start_time_unix_nano, strange.end_time_unix_nano = start, end
    said, served = await exported(body(strange))

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
    resource = b"\x12" + length(scope) + scope
    said, served = await exported(sent + b"\x0a" + length(resource) + resource)

    assert said.body == b""
    first, second = served.log.spans()
    assert first == plain
    assert int(second.kind) == 99

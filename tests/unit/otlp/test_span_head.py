"""Span heads and ids read from raw bytes agree with the full schema."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import Undecodable
from collector.otlp.span_head import (
    SpanHead,
    cut,
    head,
    parse,
    read_ids,
    start_time_unix_nano,
    trace_at,
    why_invalid,
)
from tests.support.otlp import span
from tests.support.spans import child, request, root, span_id, trace_id

SPAN = Span(trace_id=trace_id(1), span_id=span_id(2), name="x", start_time_unix_nano=5)


def with_(**fields: object) -> bytes:
    span = Span()
    span.CopyFrom(SPAN)
    for name, value in fields.items():
        setattr(span, name, value)
    return span.SerializeToString()


@pytest.mark.parametrize(
    ("raw", "parent", "remote"),
    [
        (with_(), b"", False),
        (with_(parent_span_id=span_id(3)), span_id(3), False),
        (with_(parent_span_id=span_id(3), flags=0x301), span_id(3), True),
        (with_(parent_span_id=span_id(3), flags=0x101), span_id(3), False),
        (with_(parent_span_id=span_id(3), flags=0x201), span_id(3), False),
        (with_(parent_span_id=bytes(8), flags=0x301), b"", True),
        (with_(trace_state="a=b", parent_span_id=span_id(3)), span_id(3), False),
        (with_(trace_state="a=b"), b"", False),
        (with_(name=""), b"", False),
    ],
)
def test_a_head_is_read(raw: bytes, parent: bytes, remote: bool) -> None:
    found = head(raw)

    assert found[:3] == (trace_id(1), span_id(2), parent)
    if parent:
        assert found.remote_parent is remote
    assert found.is_valid
    assert start_time_unix_nano(raw) == 5


def test_content_that_looks_like_flags_does_not_fool_it() -> None:
    span = Span(trace_id=trace_id(1), span_id=span_id(2), parent_span_id=span_id(3))
    attribute = span.attributes.add(key="blob")
    attribute.value.bytes_value = b"\x85\x01\x01\x03\x00\x00"

    assert not head(span.SerializeToString()).remote_parent


def test_fields_out_of_order_are_parsed() -> None:
    ids = Span(trace_id=trace_id(1), span_id=span_id(2)).SerializeToString()
    rest = Span(name="x", parent_span_id=span_id(3), flags=0x301).SerializeToString()

    assert head(rest + ids) == SpanHead(trace_id(1), span_id(2), span_id(3), True)


def test_what_is_no_request_or_no_span_says_so() -> None:
    with pytest.raises(Undecodable):
        parse(b"\xff\xff\xff")
    with pytest.raises(Undecodable):
        head(b"\xff\xff\xff")


def test_a_cut_keeps_everything_but_the_spans_left_out() -> None:
    whole = ExportTraceServiceRequest.FromString(request(root(), child(2)))
    whole.resource_spans[0].schema_url = "https://resource"
    whole.resource_spans[0].scope_spans[0].schema_url = "https://scope"
    whole.resource_spans.add().scope_spans.add().spans.add(span_id=span_id(9))
    wanted = ExportTraceServiceRequest()
    wanted.CopyFrom(whole)
    del wanted.resource_spans[0].scope_spans[0].spans[0]
    del wanted.resource_spans[1]

    found = cut(whole.SerializeToString(), lambda raw: head(raw).span_id == span_id(2))

    assert found == wanted.SerializeToString()


# --- ids, without attributes -----------------------------------------------------------------------------------------


def test_ids_at_their_usual_place_are_read_without_a_parse() -> None:
    data = b"..." + span(7, 1).SerializeToString()

    assert trace_at(data, 3, len(data)) == trace_id(7)


@pytest.mark.parametrize(
    "odd", [span(b"abc", 1), span(bytes(16), 1), span(1, bytes(8)), span(1, b"")]
)
def test_anything_unusual_is_looked_at_closely(odd: Span) -> None:
    data = odd.SerializeToString()

    assert trace_at(data, 0, len(data)) is None


def test_ids_beyond_the_end_of_the_span_are_not_read() -> None:
    data = span(7, 1).SerializeToString()

    assert trace_at(data, 0, 27) is None


def test_a_closer_look_finds_ids_of_any_length() -> None:
    assert read_ids(span(b"abc", b"").SerializeToString()) == (b"abc", b"")


def test_what_is_no_span_is_undecodable() -> None:
    with pytest.raises(Undecodable):
        read_ids(b"\xff")


@pytest.mark.parametrize(
    ("trace", "number", "reason"),
    [
        (trace_id(1), b"\x01" * 8, None),
        (b"", b"\x01" * 8, "trace_id has 0 bytes, not 16"),
        (trace_id(1), b"abc", "span_id has 3 bytes, not 8"),
        (bytes(16), b"\x01" * 8, "trace_id is all zeros"),
        (trace_id(1), bytes(8), "span_id is all zeros"),
    ],
)
def test_the_reason_names_the_id(trace: bytes, number: bytes, reason: str | None) -> None:
    assert why_invalid(trace, number) == reason

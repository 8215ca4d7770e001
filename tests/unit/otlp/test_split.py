"""Cutting a request into one piece per trace, where a piece stands in a record, and the walk over the wire format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.errors import Undecodable
from collector.otlp.scan import scan
from collector.otlp.split import split_by_trace
from collector.otlp.wire import RequestBudget, fields, header
from tests.support.hostile import field_of
from tests.support.otlp import body, request, span, spans_of, trace_id

LARGE = 1 << 20
parsed = ExportTraceServiceRequest.FromString


def test_a_request_of_one_trace_is_not_touched() -> None:
    sent = body(span(1, 1), span(1, 2))

    result = split_by_trace(sent, max_item=LARGE)

    assert len(result.pieces) == 1
    assert result.pieces[0].value is sent
    assert result.pieces[0].key == trace_id(1)
    assert result.accepted == 2


def test_a_resource_that_comes_after_its_scopes_is_kept() -> None:
    plain = request(span(1, 1), span(2, 2)).resource_spans[0]
    scopes = plain.scope_spans[0].SerializeToString()
    resource = plain.resource.SerializeToString()
    sent = field_of(1, field_of(2, scopes) + field_of(1, resource))

    pieces = dict(split_by_trace(sent, max_item=LARGE).pieces).values()

    resources = [parsed(each).resource_spans[0].resource for each in pieces]
    assert resources == [plain.resource] * 2


def test_ids_in_another_order_are_found() -> None:
    plain = span(1, 1)
    turned = b"\x12\x08" + plain.span_id + b"\x0a\x10" + plain.trace_id
    sent = field_of(1, field_of(2, field_of(2, turned)))

    result = split_by_trace(sent, max_item=LARGE)

    assert [piece.key for piece in result.pieces] == [trace_id(1)]


def test_a_piece_above_the_limit_becomes_several_of_the_same_trace() -> None:
    spans = [span(1, number, text="a" * 300) for number in range(1, 11)]

    result = split_by_trace(body(*spans), max_item=1000)

    again = [each for piece in result.pieces for each in spans_of(parsed(piece.value))]
    assert {piece.key for piece in result.pieces} == {trace_id(1)}
    assert all(len(piece.value) < 1200 for piece in result.pieces)
    assert len(result.pieces) > 3
    assert again == spans


def walk(data: bytes) -> list[tuple[int, bytes]]:
    return [
        (tag, data[value:end]) for tag, _, value, end in fields(data, 0, len(data), RequestBudget())
    ]


def test_every_kind_of_field_is_walked() -> None:
    data = (
        b"\x08\x96\x01" + b"\x11" + bytes(8) + b"\x1a\x02ab" + b"\x25" + bytes(4) + b"\xba\x3e\x01x"
    )

    assert walk(data) == [
        (8, b"\x96\x01"),
        (0x11, bytes(8)),
        (0x1A, b"ab"),
        (0x25, bytes(4)),
        (999 << 3 | 2, b"x"),
    ]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 3_000_000])
def test_a_header_says_how_long_its_value_is(size: int) -> None:
    data = header(0x12, size) + bytes(size)

    assert walk(data) == [(0x12, bytes(size))]


@pytest.mark.parametrize(
    "broken",
    [
        b"\x0a",
        b"\x0a\x02a",
        b"\x08",
        b"\x08\xff",
        b"\x11abc",
        b"\x0b",
        b"\x0e",
        b"\x02\x00",
        b"\x80",
        b"\x08" + b"\xff" * 11,
    ],
)
def test_what_ends_within_a_field_or_is_no_field_is_undecodable(broken: bytes) -> None:
    with pytest.raises(Undecodable):
        walk(broken)


def test_a_record_is_read_as_a_parser_reads_it() -> None:
    first, second = span(1, 1), span(2, 2)
    twice = first.SerializeToString()[:28] + b"\x0a\x10" + second.trace_id
    sent = field_of(1, field_of(2, field_of(2, twice)))

    result = split_by_trace(sent + body(span(3, 3)), max_item=LARGE, joined=LARGE)

    assert [each.key for each in result.pieces] == [trace_id(1)]
    assert set(scan(result.pieces[0].value).traces) == {trace_id(2), trace_id(3)}


# --- where the piece of each trace stands in a record ----------------------------------------------------------------


BROKEN = b"\x0a\x06\x12\x04\x12\x02\x0a\x05"
"""A request with a span that is not a message."""
UNKNOWN = b"\xba\x3e\x01x"


def of_traces(*traces: int) -> bytes:
    return body(*(span(trace, place) for place, trace in enumerate(traces, 1)))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=8))
def test_the_pieces_of_a_joined_record_are_found(pieces: list[tuple[int, int]]) -> None:
    parts = [of_traces(*[trace] * spans) for trace, spans in pieces]
    value = b"".join(parts)

    found = scan(value)

    for trace in {trace for trace, _ in pieces}:
        own = [number for number, each in enumerate(pieces) if each[0] == trace]
        stands_together = own == list(range(own[0], own[-1] + 1))
        stands = found.ranges[trace_id(trace)]
        assert (stands is not None) == stands_together
        if stands is not None:
            piece = scan(value[slice(*stands)])
            assert piece.traces == {trace_id(trace): found.traces[trace_id(trace)]}
            assert value[slice(*stands)] == b"".join(parts[own[0] : own[-1] + 1])


def test_the_record_of_one_trace_is_its_piece_with_all_that_stands_in_it() -> None:
    value = of_traces(1) + UNKNOWN + of_traces(1)

    assert scan(value).ranges == {trace_id(1): (0, len(value))}


def test_traces_that_share_a_resource_have_no_piece_of_their_own() -> None:
    alone = of_traces(3)
    value = of_traces(1, 2) + alone + of_traces(1)

    assert scan(value).ranges == {
        trace_id(1): None,
        trace_id(2): None,
        trace_id(3): (len(of_traces(1, 2)), len(of_traces(1, 2)) + len(alone)),
    }


def test_what_stands_between_belongs_to_no_trace() -> None:
    value = of_traces(1) + UNKNOWN + of_traces(1) + of_traces(2)

    assert scan(value).ranges[trace_id(1)] is None
    assert scan(value).ranges[trace_id(2)] is not None


def test_a_span_that_is_none_is_in_no_piece() -> None:
    value = of_traces(1) + BROKEN + of_traces(1)

    found = scan(value)

    assert found.invalid == 1
    assert found.ranges == {trace_id(1): None}


def test_a_record_that_only_a_parser_reads_has_its_spans_and_no_ranges() -> None:
    value = b"\x0b\x0c" + of_traces(1) + of_traces(2)  # a group, which proto3 does not have

    found = scan(value)

    assert set(found.traces) == {trace_id(1), trace_id(2)}
    assert set(found.ranges.values()) == {None}

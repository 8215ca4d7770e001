"""Where the piece of each trace stands in a record."""

from hypothesis import given
from hypothesis import strategies as st

from collector.otlp.scan import scan
from tests.support.spans import Made, request, trace_id

BROKEN = b"\x0a\x06\x12\x04\x12\x02\x0a\x05"
"""A request with a span that is not a message."""
UNKNOWN = b"\xba\x3e\x01x"


def made(*traces: int) -> bytes:
    return request(*[Made(trace=trace, span=place) for place, trace in enumerate(traces, 1)])


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=8))
def test_the_pieces_of_a_joined_record_are_found(pieces: list[tuple[int, int]]) -> None:
    parts = [made(*[trace] * spans) for trace, spans in pieces]
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
    value = made(1) + UNKNOWN + made(1)

    assert scan(value).ranges == {trace_id(1): (0, len(value))}


def test_traces_that_share_a_resource_have_no_piece_of_their_own() -> None:
    alone = made(3)
    value = made(1, 2) + alone + made(1)

    assert scan(value).ranges == {
        trace_id(1): None,
        trace_id(2): None,
        trace_id(3): (len(made(1, 2)), len(made(1, 2)) + len(alone)),
    }


def test_what_stands_between_belongs_to_no_trace() -> None:
    value = made(1) + UNKNOWN + made(1) + made(2)

    assert scan(value).ranges[trace_id(1)] is None
    assert scan(value).ranges[trace_id(2)] is not None


def test_a_span_that_is_none_is_in_no_piece() -> None:
    value = made(1) + BROKEN + made(1)

    found = scan(value)

    assert found.invalid == 1
    assert found.ranges == {trace_id(1): None}


def test_a_record_that_only_a_parser_reads_has_its_spans_and_no_ranges() -> None:
    value = b"\x0b\x0c" + made(1) + made(2)  # a group, which proto3 does not have

    found = scan(value)

    assert set(found.traces) == {trace_id(1), trace_id(2)}
    assert set(found.ranges.values()) == {None}

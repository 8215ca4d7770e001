"""Ids of a span, without its attributes."""

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import Undecodable
from collector.otlp.span_head import read_ids, trace_at, why_invalid
from tests.support.otlp import span, trace_id


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

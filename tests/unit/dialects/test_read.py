"""Which spans are read, and when a trace is marked truncated."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaluators.dialects.read import read_trace
from evaluators.digest import trace_digest
from evaluators.model import Trace
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, span_id, trace_of


def read(*pieces: bytes, trace_id: str = TRACE_ID) -> Trace:
    return read_trace(pieces, trace_id=trace_id, closed="idle")


def test_no_span_of_the_trace_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no span of trace"):
        read(request(SpanSpec(id=1)), trace_id="ff" * 16)


def test_spans_of_other_traces_are_passed_over() -> None:
    other = request(SpanSpec(id=9), trace_id="ff" * 16)

    assert read(other, request(SpanSpec(id=1))).spans == 1


def test_of_a_span_sent_twice_the_first_copy_counts() -> None:
    copies = [request(SpanSpec(id=1, attributes={"session.id": name})) for name in ("one", "two")]

    assert read(*copies).session_id == "one"


def test_a_broken_piece_or_dropped_attributes_mark_the_trace_truncated() -> None:
    trace = read(request(SpanSpec(id=1)), b"\xff\xff")

    assert (trace.spans, trace.truncated, "truncated" in trace.gaps) == (1, True, True)
    assert trace_of(SpanSpec(id=1, dropped=3)).truncated
    assert not trace_of(SpanSpec(id=1)).truncated


def test_the_digest_is_that_of_the_span_ids() -> None:
    trace = trace_of(SpanSpec(id=1), SpanSpec(id=2, parent=1))

    assert trace.digest == trace_digest([span_id(1), span_id(2)])


def test_resources_too_large_to_remember_are_read_as_the_others() -> None:
    """And each request's own: resources are remembered by their bytes."""
    services = ["one", "x" * 100, "one", "two"]

    def service(name: str, padding: int) -> str:
        message = ExportTraceServiceRequest.FromString(request(SpanSpec(id=1)))
        resource = message.resource_spans[0].resource
        for key, value in (("service.name", name), ("padding", "p" * padding)):
            resource.attributes.add(key=key).value.string_value = value
        return read(message.SerializeToString()).service

    assert [service(name, padding) for padding in (1, 10_000) for name in services] == 2 * services

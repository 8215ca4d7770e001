"""Which trace a turn was sent in, whatever the bytes are."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.segment import Segment, trace_state
from collector.otlp.split_logs import carry_spans
from collector.reading.worker import sent_trace_id

FIRST, SECOND = b"1" * 16, b"2" * 16


def sent(trace: bytes, start: int, name: str = "claude_code.interaction") -> bytes:
    """One span without a parent, as it stands in the log."""
    message = ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    scope.scope.name = "com.anthropic.claude_code.tracing"
    span = scope.spans.add(trace_id=trace, span_id=b"s" * 8, name=name, start_time_unix_nano=start)
    span.attributes.add(key="session.id").value.string_value = "s"
    carried = carry_spans(message.SerializeToString())
    assert carried is not None
    return carried[0]


def test_the_first_of_several_turns_gives_its_id() -> None:
    """A helper's report begins a trace, and belongs to the turn before."""
    pieces = [sent(SECOND, 9), sent(FIRST, 5)]

    assert sent_trace_id(pieces) == sent_trace_id(pieces[::-1]) == FIRST.hex()


def test_only_the_span_of_a_turn_gives_an_id() -> None:
    assert sent_trace_id([sent(FIRST, 5, "claude_code.llm_request")]) is None


@pytest.mark.parametrize("traces", [(), (FIRST,)])
def test_what_a_sender_wrote_into_a_trace_state_breaks_nothing(traces: tuple[bytes, ...]) -> None:
    segment = Segment(owner=b"o" * 16, session=b"s" * 8, start=1, traces=traces, has_spans=True)
    message = ExportTraceServiceRequest.FromString(sent(SECOND, 5))
    message.resource_spans[0].scope_spans[0].spans[0].trace_state = trace_state(segment)

    found = sent_trace_id([message.SerializeToString()])

    assert found == (FIRST.hex() if traces else None)


def test_bytes_that_cannot_be_read_have_none() -> None:
    assert sent_trace_id([sent(FIRST, 5), b"\xff"]) is None

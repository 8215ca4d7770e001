"""Which turn a span belongs to and which trace it was sent in, whatever the bytes of its trace state are."""

from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.segment import Segment, segment_in, trace_state
from collector.otlp.split_logs import carry_spans
from collector.otlp.trace_state import marked, stated_randomness, threshold_of, with_threshold
from collector.reading.worker import sent_trace_id
from tests.support.otlp import body, request, span, spans_of
from tests.support.table import for_each

GIVEN: dict[str, Any] = {"owner": b"o" * 16, "session": b"s" * 8, "start": 1}


@pytest.mark.parametrize("more", [{}, {"turn": b"t" * 16}, {"traces": (b"a" * 16, b"b" * 16)}])
def test_a_segment_is_read_back(more: dict[str, Any]) -> None:
    segment = Segment(**GIVEN, **more)

    assert segment_in(trace_state(segment)) == segment


@pytest.mark.parametrize(
    "wrong",
    [
        {"owner": b"o"},
        {"session": b""},
        {"start": -1},
        {"turn": b"t"},
        {"turn": bytes(16)},
        {"traces": (b"a" * 16, b"b")},
        {"traces": (bytes(16),)},
        {"helper_session": b"h"},
    ],
)
def test_ids_of_other_lengths_and_times_before_all_make_none(wrong: dict[str, Any]) -> None:
    """A turn that is not a trace id would end the room that reads it."""
    segment = Segment(**{**GIVEN, **wrong})

    assert segment_in(trace_state(segment)) is None


@pytest.mark.parametrize(
    "state", ["", "a=b", "spanwise=", "spanwise=é", "spanwise=AAAA", "spanwise"]
)
def test_other_trace_states_are_anybodys(state: str) -> None:
    assert segment_in(state) is None


# --- the trace in which a turn was sent ------------------------------------------------------------------------------


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


# --- the threshold - combined, never loosened, beside what others say there ------------------------------------------


def _members(count: int) -> str:
    return ",".join(f"v{at}={at}" for at in range(count))


CASES = [
    ("", 0, "ot=th:0"),
    ("", threshold_of(0.5), "ot=th:8"),
    ("", threshold_of(0.25), "ot=th:c"),
    ("", threshold_of(0.05), "ot=th:f333333333333"),
    ("ot=th:8", threshold_of(0.25), "ot=th:c"),
    ("ot=th:c", threshold_of(0.5), "ot=th:c"),
    ("ot=th:c", 0, "ot=th:c"),
    ("ot=rv:0123456789abcd;th:8", threshold_of(0.25), "ot=th:c;rv:0123456789abcd"),
    ("congo=t61,ot=p:1", 0, "ot=th:0;p:1,congo=t61"),
    ("congo=t61, rojo=00f0", 0, "ot=th:0,congo=t61,rojo=00f0"),
    ("ot=th:nonsense", threshold_of(0.5), "ot=th:8"),
    ("=,,ot", 0, "ot=th:0"),
    (f"ot=x:{'y' * 300};rv:0123456789abcd", 0, "ot=th:0;rv:0123456789abcd"),
    (_members(32), 0, f"ot=th:0,{_members(31)}"),
    (f"{_members(31)},ot=th:8", 0, f"ot=th:8,{_members(31)}"),
]


@for_each(("before", "threshold", "after"), CASES)
def test_a_threshold_is_written_and_never_loosened(before: str, threshold: int, after: str) -> None:
    assert with_threshold(before, threshold) == after


def test_a_value_that_would_be_too_long_is_the_threshold_alone() -> None:
    assert with_threshold("ot=" + "x" * 300, 0) == "ot=th:0"


def test_the_first_span_with_a_randomness_says_it() -> None:
    plain, stated = span(), span()
    stated.trace_state = "congo=rv:1,ot=th:8;rv:00000000000010"

    assert stated_randomness([body(plain)]) is None
    assert stated_randomness([b"\xffrv:", body(plain), body(stated)]) == 16


def test_every_span_has_the_threshold_and_the_root_why() -> None:
    root, child = span(1, 1), span(1, 2)
    child.parent_span_id = root.span_id
    sent = request(root, child).SerializeToString()

    made, count = marked(sent, threshold=threshold_of(0.5), reason="share", root=None)

    spans = spans_of(ExportTraceServiceRequest.FromString(made))
    assert count == 2
    assert [each.trace_state for each in spans] == ["ot=th:8", "ot=th:8"]
    assert [[a.value.string_value for a in each.attributes] for each in spans] == [["share"], []]
    spans[0].attributes.pop()
    for each in spans:
        each.trace_state = ""
    assert spans == [root, child], "nothing else changes"
    named, _ = marked(sent, threshold=0, reason="failed", root=child.span_id)
    assert [
        len(each.attributes) for each in spans_of(ExportTraceServiceRequest.FromString(named))
    ] == [0, 1]

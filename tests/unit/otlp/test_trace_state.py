"""The threshold in a span's trace state: combined, never loosened, beside what others say there."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.trace_state import (
    marked,
    stated_randomness,
    threshold_of,
    with_threshold,
)
from tests.support.otlp import body, request, span
from tests.support.received_log import spans_of
from tests.support.table import for_each


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

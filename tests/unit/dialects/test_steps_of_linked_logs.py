"""What records say of each other is read in proportion to their number."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.split_logs import split_logs
from evaluators.dialects.enrichment.ledger import Ledger
from evaluators.dialects.read import read_trace
from evaluators.model import Event, Span
from tests.support.growth import steps
from tests.support.linked_logs import CALL_SPAN, CALL_TRACE, SHAPES, Shape, details, request, words
from tests.support.table import for_each

COUNT = 300
MOST = 2.2
"""Times the steps that twice the records may take."""


CALL = ExportTraceServiceRequest()
"""The span that gets the words."""
CALL.resource_spans.add().scope_spans.add().spans.add(
    trace_id=CALL_TRACE, span_id=CALL_SPAN, name="chat", start_time_unix_nano=1
)


def read(shape: Shape, count: int, *sent: bytes) -> int:
    split = split_logs(request(shape(count)), max_item=1 << 24, joined=1 << 24)
    pieces = [*sent, *(piece.value for piece in split.pieces)]
    return steps(lambda: read_trace(pieces, trace_id=CALL_TRACE.hex(), closed="idle"))


@pytest.mark.heavy
@for_each("shape", SHAPES)
def test_twice_the_records_are_twice_the_steps(shape: Shape) -> None:
    once = read(shape, COUNT)  # first: sets of names that were seen before cost less

    assert read(shape, 2 * COUNT) <= MOST * once


@pytest.mark.parametrize("shape", [words, details])
def test_so_it_is_where_the_span_is_there_that_they_tell_of(shape: Shape) -> None:
    call = CALL.SerializeToString()

    assert read(shape, 2 * COUNT, call) <= MOST * read(shape, COUNT, call)


def test_a_span_is_made_once_for_all_the_events_that_are_lent_to_it() -> None:
    call = span("call")
    ledger = Ledger([call])
    before = ledger.get("call")

    for number in range(1_000):
        event = Event(name="gen_ai.choice", time_unix_nano=number, attributes={})
        ledger.add_events(span(f"record {number}"), "call", [event])

    assert ledger.get("call") is before, "48,000 of them copied each other"
    (lent,) = ledger.spans
    assert [each.time_unix_nano for each in lent.events] == [*range(1_000)]


def test_a_span_is_not_made_again_for_words_that_it_has() -> None:
    ledger = Ledger([span("call")])
    first = ledger.enrich(span("a"), span("call"), {"gen_ai.request.model": "m"})

    assert ledger.enrich(span("b"), first, {"gen_ai.request.model": "other"}) is first
    assert ledger.enrich(span("c"), first, {"gen_ai.response.id": "r"}) is not first
    assert ledger.merged == ("a", "b", "c")


def span(span_id: str) -> Span:
    return Span(
        trace_id="t",
        span_id=span_id,
        parent_span_id="",
        name="chat",
        kind=0,
        flags=0,
        start_time_unix_nano=1,
        end_time_unix_nano=1,
        attributes={},
        events=(),
        status="unset",
        status_message="",
        scope="",
        resource={},
    )

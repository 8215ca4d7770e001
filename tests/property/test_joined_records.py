"""One record per request: the pieces of a request joined."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.scan import scan
from collector.otlp.split import split_by_trace
from tests.property.test_receiver import MAX_SPAN, grouped
from tests.support.examples import examples

LARGE = 1 << 20
steady = settings(
    deadline=None, max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow]
)


@steady
@given(grouped(valid=False), st.sampled_from([1, 300, 1000, LARGE]))
def test_a_joined_record_is_the_pieces_one_after_the_other(
    sent: ExportTraceServiceRequest, joined: int
) -> None:
    whole = sent.SerializeToString()
    pieces = split_by_trace(whole, max_item=LARGE).pieces

    split = split_by_trace(whole, max_item=LARGE, joined=joined)

    assert b"".join(each.value for each in split.pieces) == b"".join(each.value for each in pieces)
    found = [
        record.value[slice(*stands)]
        for record in split.pieces
        for stands in scan(record.value).ranges.values()
        if stands is not None
    ]
    assert found == [each.value for each in pieces]
    assert all(len(r.value) <= joined or len(scan(r.value).traces) == 1 for r in split.pieces)


@steady
@given(grouped(valid=False), st.sampled_from([300, LARGE]), st.sampled_from([MAX_SPAN, LARGE]))
def test_joining_counts_what_splitting_counts(
    sent: ExportTraceServiceRequest, joined: int, max_item: int
) -> None:
    whole = sent.SerializeToString()

    split = split_by_trace(whole, max_item=max_item, joined=joined)

    counted = split_by_trace(whole, max_item=max_item)
    assert (split.accepted, split.invalid, split.too_large) == (
        counted.accepted,
        counted.invalid,
        counted.too_large,
    )

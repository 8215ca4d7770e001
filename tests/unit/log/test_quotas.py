"""The quotas add up, and closings fit when spans are full."""

from collector.log.embedded.retention import Quotas
from collector.log.port import CLOSINGS, FEEDBACK, MAX_RECORD, SESSIONS, SIGNALS, SPANS, TRACES


def test_the_quotas_are_the_whole_and_spans_closings_and_traces_share_one() -> None:
    quotas = Quotas(1000)

    assert [quotas.quota(t) for t in (SPANS, SIGNALS, FEEDBACK, SESSIONS)] == [750, 130, 20, 100]
    assert quotas.pool(SPANS) == quotas.pool(TRACES) == quotas.pool(CLOSINGS)
    assert set(quotas.pool(SPANS)) == {SPANS, CLOSINGS, TRACES}


def test_closings_and_a_trace_fit_when_spans_do_not() -> None:
    for size in (64 << 20, 1 << 30):
        quotas = Quotas(size)
        assert quotas.limit(SPANS) == int(0.8 * quotas.quota(SPANS))
        assert quotas.limit(CLOSINGS) == quotas.quota(SPANS)
        assert quotas.at_once(TRACES) == quotas.quota(TRACES) - quotas.limit(SPANS)
        assert quotas.largest(TRACES) < quotas.at_once(TRACES)
    assert Quotas(4 << 30).largest(TRACES) == MAX_RECORD
    assert Quotas(16 << 20).largest(TRACES) < Quotas(16 << 20).limit(TRACES)

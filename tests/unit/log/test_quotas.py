"""The quotas add up, and closings fit when spans are full."""

from collector.log.embedded.retention import Quotas
from collector.log.port import CLOSINGS, FEEDBACK, MAX_RECORD, SESSIONS, SIGNALS, SPANS, TRACES


def test_the_quotas_are_the_whole() -> None:
    quotas = Quotas(1000)

    assert [quotas.quota(t) for t in (SPANS, SIGNALS, FEEDBACK, SESSIONS)] == [750, 130, 20, 100]


def test_spans_closings_and_traces_share_one_pool() -> None:
    pool = Quotas(1000).pool(SPANS)

    assert pool == Quotas(1000).pool(TRACES) == Quotas(1000).pool(CLOSINGS)
    assert set(pool) == {SPANS, CLOSINGS, TRACES}


def test_closings_fit_when_spans_do_not() -> None:
    quotas = Quotas(1 << 30)

    assert quotas.limit(SPANS) == int(0.8 * quotas.quota(SPANS))
    assert quotas.limit(CLOSINGS) == quotas.quota(SPANS)


def test_a_trace_fits_into_what_spans_always_leave() -> None:
    quotas = Quotas(64 << 20)

    assert quotas.at_once(TRACES) == quotas.quota(TRACES) - quotas.limit(SPANS)
    assert quotas.largest(TRACES) < quotas.at_once(TRACES)


def test_a_record_fits_into_its_quota() -> None:
    assert Quotas(4 << 30).largest(TRACES) == MAX_RECORD
    assert Quotas(16 << 20).largest(TRACES) < Quotas(16 << 20).limit(TRACES)

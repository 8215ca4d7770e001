"""The quotas add up, and closings fit when spans are full."""

from __future__ import annotations

from collector.log.embedded.retention import Quotas
from collector.log.port import CLOSINGS, MAX_RECORD, SESSIONS, SIGNALS, SPANS, TRACES


def test_the_quotas_are_the_whole() -> None:
    quotas = Quotas(1000)

    assert [quotas.quota(t) for t in (SPANS, TRACES, SIGNALS, SESSIONS)] == [500, 250, 150, 100]


def test_closings_fit_when_spans_do_not() -> None:
    quotas = Quotas(1 << 30)

    assert quotas.limit(SPANS) == int(0.9 * quotas.quota(SPANS))
    assert quotas.limit(CLOSINGS) == quotas.quota(SPANS)


def test_a_record_fits_into_its_quota() -> None:
    assert Quotas(4 << 30).largest(TRACES) == MAX_RECORD
    assert Quotas(16 << 20).largest(TRACES) < Quotas(16 << 20).limit(TRACES)

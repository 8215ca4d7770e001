"""The shares add up, and leave spans room to be closed in."""

from __future__ import annotations

from collector.log.embedded.shares import MAX_RECORD, Shares
from collector.log.port import CLOSINGS, SESSIONS, SIGNALS, SPANS, TRACES


def test_the_shares_are_the_whole() -> None:
    shares = Shares(1000)

    assert [shares.share(t) for t in (SPANS, TRACES, SIGNALS, SESSIONS)] == [500, 250, 150, 100]


def test_closings_fit_when_spans_do_not() -> None:
    shares = Shares(1 << 30)

    assert shares.limit(SPANS) == int(0.9 * shares.share(SPANS))
    assert shares.limit(CLOSINGS) == shares.share(SPANS)


def test_a_record_fits_into_its_share() -> None:
    assert Shares(4 << 30).largest(TRACES) == MAX_RECORD
    assert Shares(16 << 20).largest(TRACES) < Shares(16 << 20).limit(TRACES)

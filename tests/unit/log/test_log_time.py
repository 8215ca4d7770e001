"""Log time never goes back, and an end that was reported is never undercut."""

from collector.log.embedded.polling import SharedLogTime
from tests.support.ticking import SetClock


def test_it_follows_the_clock_but_never_back() -> None:
    clock = SetClock(10.0)
    time = SharedLogTime(clock, last=12.5)

    assert time.begin() == 12.5
    time.finish()
    clock.now = 20.0
    assert time.begin() == 20.0
    time.finish()
    clock.now = 1.0
    assert time.begin() == 20.0


def test_the_end_does_not_pass_a_transaction_that_is_not_visible_yet() -> None:
    clock = SetClock(10.0)
    time = SharedLogTime(clock)

    in_flight = time.begin()
    clock.now = 15.0
    before = time.end()
    time.finish()

    assert before <= in_flight
    assert time.end() == 15.0


def test_an_end_that_was_reported_holds_for_later_records() -> None:
    clock = SetClock(10.0)
    time = SharedLogTime(clock)

    reported = time.end()
    clock.now = 3.0

    assert time.begin() >= reported

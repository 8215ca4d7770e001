"""No end is reported beyond what a reader can see. That log time never goes back is in `OwnedLogContract`."""

from collector.log.embedded.polling import SharedLogTime
from tests.support.ticking import SetClock


def test_the_end_does_not_pass_a_transaction_that_is_not_visible_yet() -> None:
    clock = SetClock(10.0)
    time = SharedLogTime(clock)

    in_flight = time.begin()
    clock.now = 15.0
    before = time.end()
    time.finish()

    assert before <= in_flight
    assert time.end() == 15.0

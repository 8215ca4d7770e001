"""What is refused before it is parsed (how much, which, and that it ends), and how fast a body must come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.base.errors import LogFull
from collector.receiver.answers import Behind
from collector.receiver.overload import (
    DEALT_FOR,
    FULL_FOR,
    LEAST,
    LOOK_EVERY,
    PATIENCE,
    RATE,
    Overload,
    Pace,
    share,
)
from tests.support.clocks import SetClock
from tests.support.otlp import body, span

LIMIT = 30.0
COMPRESSED = b"\x1f\x8b"


class Stand:
    """An overload whose lag and clock the test sets."""

    def __init__(self, lag: float = 0.0) -> None:
        self.clock = SetClock(1000.0)
        self.lag = lag
        self.overload = Overload(clock=self.clock, limit=LIMIT, behind=lambda: self.lag)

    def takes(self, sent: bytes) -> bool:
        self.clock.now += LOOK_EVERY
        try:
            self.overload.before_splitting(sent)
        except Behind:
            return False
        return True


def test_who_keeps_up_takes_everything() -> None:
    stand = Stand(lag=LIMIT / 2)

    assert all(stand.takes(body(span(trace, 1))) for trace in range(1, 200))


@pytest.mark.parametrize("sent", [COMPRESSED, body(*[span(trace, 1) for trace in range(1, 30)])])
@pytest.mark.parametrize(("lag", "part"), [(LIMIT, 0.5), (1.25 * LIMIT, 0.25), (1e6, LEAST)])
def test_the_longer_traces_wait_the_less_is_taken(sent: bytes, lag: float, part: float) -> None:
    stand = Stand(lag)

    assert sum(stand.takes(sent) for _ in range(400)) == pytest.approx(400 * part, abs=1)


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(5, 1e5))
def test_the_share_never_grows_with_the_lag_and_never_ends(
    lag: float, more: float, limit: float
) -> None:
    assert LEAST <= share(lag + more, limit) <= share(lag, limit) <= 1


@given(st.integers(1, 1 << 127), st.lists(st.floats(0, 100), min_size=2, max_size=8))
def test_a_trace_that_is_taken_is_taken_whole_until_less_is_taken(
    trace: int, lags: list[float]
) -> None:
    stand = Stand()
    taken: list[tuple[float, bool]] = []
    stand.clock.now = 2 * DEALT_FOR
    for number, lag in enumerate(lags, 1):
        stand.lag = lag
        taken.append((share(lag, LIMIT), stand.takes(body(span(trace, number)))))

    assert all(
        more for part, is_taken in taken for other, more in taken if is_taken and other >= part
    )


def test_a_trace_that_is_refused_gets_another_chance() -> None:
    stand = Stand(lag=LIMIT)
    sent = body(span(1, 1))
    said: set[bool] = set()
    for _ in range(20):
        stand.clock.now += DEALT_FOR
        said.add(stand.takes(sent))

    assert said == {True, False}


def test_about_the_share_of_all_traces_is_taken() -> None:
    stand = Stand(lag=LIMIT)

    taken = sum(stand.takes(body(span(trace, 1))) for trace in range(1, 1001))

    assert 400 < taken < 600


def test_a_request_that_is_none_is_left_to_who_parses_it() -> None:
    assert Stand(lag=0).takes(b"\x0a\xff")


def test_the_delay_grows_with_the_lag() -> None:
    assert Behind(1e6, LIMIT).delay > Behind(LIMIT, LIMIT).delay > Behind(LIMIT / 2, LIMIT).delay


def test_after_a_full_log_one_request_tries_at_a_time() -> None:
    stand = Stand()
    stand.overload.full()

    with pytest.raises(LogFull):
        stand.overload.before_reading()
    stand.clock.now += FULL_FOR
    stand.overload.before_reading()
    with pytest.raises(LogFull):
        stand.overload.before_reading()
    stand.overload.written()
    stand.overload.before_reading()


def test_a_clock_that_is_set_back_does_not_keep_the_log_full() -> None:
    stand = Stand()
    stand.overload.full()
    stand.clock.now -= 1000

    stand.overload.before_reading()


def test_a_body_that_never_comes_has_five_seconds() -> None:
    assert Pace.begin(100.0, timeout=60).due == 105.0


def test_what_comes_buys_time_at_the_least_rate() -> None:
    pace = Pace.begin(0.0, timeout=60)

    pace.took(RATE, 3.0)
    assert pace.due == 6.0
    pace.took(RATE // 2, 5.0)
    assert pace.due == 6.5


def test_a_body_that_came_fast_and_stands_still_ends_as_soon() -> None:
    pace = Pace.begin(0.0, timeout=60)

    pace.took(64 << 20, 1.0)

    assert pace.due == 1.0 + PATIENCE


def test_the_whole_body_has_its_own_limit() -> None:
    pace = Pace.begin(0.0, timeout=60)

    pace.took(64 << 20, 58.0)

    assert pace.due == 60.0
    assert Pace.begin(0.0, timeout=2).due == 2.0


@given(st.lists(st.tuples(st.integers(0, 2 * RATE), st.floats(0, 10)), max_size=30))
def test_a_body_that_holds_the_rate_is_never_too_slow(gaps: list[tuple[int, float]]) -> None:
    """Whatever the sizes: a chunk of `n` bytes at most `n / RATE` seconds after the one before it."""
    pace, now = Pace.begin(0.0, timeout=1e9), 0.0
    for size, wait in gaps:
        now += min(wait, size / RATE, PATIENCE)
        assert now <= pace.due + 1e-6
        pace.took(size, now)


def test_without_a_limit_nothing_is_refused() -> None:
    overload = Overload(clock=lambda: 0.0, limit=None, behind=lambda: 1e9)

    overload.before_splitting(COMPRESSED)

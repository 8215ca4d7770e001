"""How fast a body must come."""

from hypothesis import given
from hypothesis import strategies as st

from collector.receiver.overload import PATIENCE, RATE, Pace


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

"""Which calls are slow, against what calls of the tool usually take."""

from evaluators.formulas.durations import LEAST, MOST, MOST_WAITING, Durations


def learned(*seconds: float) -> Durations:
    durations = Durations()
    for each in seconds:
        durations.wait(each)
        durations.learn()
    return durations


def test_too_few_calls_tell_nothing() -> None:
    assert learned(*[1.0] * (LEAST - 1)).is_slow(99.0) is None
    assert learned(*[1.0] * LEAST).is_slow(99.0) is True


def test_a_slow_call_is_above_twice_the_median_and_above_98_of_100_earlier_ones() -> None:
    steady, mixed = learned(*[1.0] * 100), learned(*[1.0] * 95, *[30.0] * 5)

    assert [steady.is_slow(seconds) for seconds in (2.5, 1.9)] == [True, False]
    assert [mixed.is_slow(seconds) for seconds in (20.0, 40.0)] == [False, True]
    assert learned(*[0.0, 1e300] * 20).is_slow(1.0) is False, "any length has a bucket"


def test_what_waits_is_not_learned_until_it_may_be_and_is_bounded() -> None:
    durations = learned(*[1.0] * 100)
    for _ in range(2 * MOST_WAITING):
        durations.wait(50.0)
    assert durations.is_slow(50.0) is True
    assert len(durations.waiting) == MOST_WAITING

    durations.skip()
    durations.learn()

    assert durations.is_slow(50.0) is True


def test_old_calls_count_less_and_the_size_is_bounded() -> None:
    durations = learned(*[1.0] * MOST, *[10.0] * MOST)

    assert sum(durations.counts.values()) <= MOST
    assert durations.is_slow(15.0) is False
    assert Durations(durations.counts).is_slow(15.0) is False

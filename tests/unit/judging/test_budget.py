from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collector.judging.budget import DAY, Budget, in_sample


def make_budget(usd: float | None = 1.0, rate: int = 60) -> Budget:
    return Budget(usd_per_day=usd, calls_per_minute=rate)


def test_what_is_reserved_is_not_given_twice() -> None:
    budget = make_budget(1.0)
    assert budget.reserve(0.0, 0.6)
    assert not budget.reserve(0.0, 0.6)
    budget.settle(1.0, reserved=0.6, usd=0.1)
    assert budget.reserve(1.0, 0.6)
    assert budget.remaining(1.0) == 1.0 - 0.1 - 0.6


def test_a_new_day_begins_anew() -> None:
    budget = make_budget(1.0)
    budget.restore(10.0, calls=1, usd=1.0, now=20.0)
    assert not budget.reserve(30.0, 0.5)
    assert budget.reserve(DAY + 1, 0.5)


def test_verdicts_of_another_day_do_not_count() -> None:
    budget = make_budget(1.0)
    budget.restore(10.0, calls=1, usd=1.0, now=DAY + 10)
    assert budget.remaining(DAY + 10) == 1.0


def test_a_replica_spends_its_share() -> None:
    budget = make_budget(1.0)
    budget.share = 0.25
    assert not budget.reserve(0.0, 0.3)
    assert budget.reserve(0.0, 0.2)


def test_the_rate_is_kept_over_a_restart() -> None:
    budget = make_budget(None, rate=2)
    budget.restore(100.0, calls=5, usd=0.0, now=110.0)
    assert budget.wait(110.0) == 50.0
    assert budget.wait(161.0) == 0.0


@given(st.lists(st.floats(0, 30), max_size=40), st.integers(1, 5))
def test_never_more_calls_in_a_minute_than_allowed(pauses: list[float], rate: int) -> None:
    budget = make_budget(None, rate=rate)
    now, made = 1000.0, [0.0]
    for pause in pauses:
        now += pause
        while (wait := budget.wait(now)) > 0:
            now += wait
        assert budget.reserve(now, 0.0)
        made.append(now)
        assert sum(each > now - 60 + 1e-6 for each in made) <= rate


def test_the_share_is_kept_and_a_larger_sample_holds_the_smaller() -> None:
    keys = [f"bot\0s-{n}".encode() for n in range(4000)]
    small = {key for key in keys if in_sample(key, 0.1)}
    large = {key for key in keys if in_sample(key, 0.5)}
    assert 300 < len(small) < 500
    assert small < large
    assert all(in_sample(key, 1.0) for key in keys)
    assert not any(in_sample(key, 0.0) for key in keys)

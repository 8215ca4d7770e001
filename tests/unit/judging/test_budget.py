from hypothesis import given
from hypothesis import strategies as st

from collector.judging.budget import DAY, LOOK_AGAIN, MAX_SERVICES, Budget, in_sample


def make_budget(usd: float | None = 1.0, rate: int = 60) -> Budget:
    return Budget(usd_per_day=usd, calls_per_minute=rate)


def test_what_is_reserved_is_not_given_twice() -> None:
    budget = make_budget(1.0)
    assert budget.reserve(0.0, 0.6, "s")
    assert not budget.reserve(0.0, 0.6, "s")
    budget.settle(1.0, "s", reserved=0.6, usd=0.1)
    assert budget.reserve(1.0, 0.6, "s")
    assert budget.remaining(1.0) == 1.0 - 0.1 - 0.6


def test_verdicts_of_another_day_do_not_count() -> None:
    budget = make_budget(1.0)
    budget.restore(10.0, "s", calls=1, usd=1.0, now=DAY + 10)
    assert budget.remaining(DAY + 10) == 1.0


def test_a_replica_spends_its_share() -> None:
    budget = make_budget(1.0)
    budget.share = 0.25
    assert not budget.reserve(0.0, 0.3, "s")
    assert budget.reserve(0.0, 0.2, "s")


def test_the_rate_is_kept_over_a_restart() -> None:
    budget = make_budget(None, rate=2)
    budget.restore(100.0, "s", calls=5, usd=0.0, now=110.0)
    assert budget.wait(110.0, "s") == 50.0
    assert budget.wait(161.0, "s") == 0.0


@given(st.lists(st.floats(0, 30), max_size=40), st.integers(1, 5))
def test_never_more_calls_in_a_minute_than_allowed(pauses: list[float], rate: int) -> None:
    budget = make_budget(None, rate=rate)
    now, made = 1000.0, [0.0]
    for pause in pauses:
        now += pause
        while (wait := budget.wait(now, "s")) > 0:
            now += wait
        assert budget.reserve(now, 0.0, "s")
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


# --- shares ----------------------------------------------------------------------------------------------------------


def test_a_service_above_its_share_waits_while_another_is_below_its_own() -> None:
    budget = Budget(usd_per_day=None, calls_per_minute=4, service_share=0.5)
    for _ in range(2):
        assert budget.wait(0.0, "greedy", {"modest"}) == 0
        assert budget.reserve(0.0, 0.0, "greedy")
    assert budget.wait(1.0, "greedy", {"modest"}) == LOOK_AGAIN
    assert budget.wait(1.0, "modest", {"greedy"}) == 0
    # With nobody else there, all of the budget is its own.
    assert budget.wait(1.0, "greedy") == 0
    budget.waits("room", frozenset({"greedy", "modest"}))
    assert budget.wait(1.0, "greedy") == LOOK_AGAIN
    # A minute later its calls are forgotten.
    assert budget.wait(61.0, "greedy", {"modest"}) == 0


def test_usd_have_shares_too_and_what_was_reserved_and_not_spent_is_given_back() -> None:
    budget = Budget(usd_per_day=10.0, calls_per_minute=60, service_share=0.5)
    assert budget.reserve(0.0, 5.0, "greedy")
    assert budget.wait(0.0, "greedy", {"modest"}) == LOOK_AGAIN
    budget.settle(0.0, "greedy", reserved=5.0, usd=1.0)
    assert budget.wait(0.0, "greedy", {"modest"}) == 0
    budget.restore(1.0, "greedy", calls=1, usd=4.0, now=2.0)
    assert budget.wait(2.0, "greedy", {"modest"}) == LOOK_AGAIN
    assert budget.wait(DAY + 2.0, "greedy", {"modest"}) == 0


def test_services_counted_apart_are_bounded() -> None:
    budget = Budget(usd_per_day=1e6, calls_per_minute=10, service_share=0.5)
    for number in range(3 * MAX_SERVICES):
        assert budget.reserve(float(number), 1.0 + number / 1e6, f"bot-{number}")
        budget.settle(float(number), f"bot-{number}", reserved=1.0 + number / 1e6, usd=1.0)
    assert len(budget._usd_of) <= MAX_SERVICES
    assert budget.remaining(3.0 * MAX_SERVICES) == 1e6 - 3 * MAX_SERVICES


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 20)), max_size=60),
    st.integers(2, 8),
    st.sampled_from([0.25, 0.5, 0.75]),
)
def test_while_another_waits_below_its_share_no_service_goes_above_its_own(
    asked: list[tuple[str, float]], rate: int, share: float
) -> None:
    budget = Budget(usd_per_day=None, calls_per_minute=rate, service_share=share)
    most = max(1, int(rate * share))
    now = 1000.0
    made: list[tuple[float, str]] = []
    for service, pause in asked:
        now += pause
        recent = [each for time, each in made if time > now - 60]
        if budget.wait(now, service, "abc") == 0:
            others = {"a", "b", "c"} - {service}
            is_contested = any(recent.count(each) < most for each in others)
            assert not is_contested or recent.count(service) < most
            assert budget.reserve(now, 0.0, service)
            made.append((now, service))
        elif len(recent) < rate:
            # Whoever waits, somebody may call: the budget is never left idle.
            assert any(budget.wait(now, each, "abc") == 0 for each in "abc")


def test_sessions_beyond_the_sample_have_half_of_the_budget_and_leave_the_rest() -> None:
    budget = make_budget(1.0, rate=4)
    assert budget.reserve(0.0, 0.5, "s", more=True)
    assert not budget.reserve(0.0, 0.1, "s", more=True)
    budget.settle(1.0, "s", reserved=0.5, usd=0.3, more=True)
    assert budget.reserve(1.0, 0.2, "s", more=True)
    assert budget.wait(1.0, "s", more=True) == LOOK_AGAIN
    assert budget.wait(1.0, "s") == 0.0
    assert budget.reserve(1.0, 0.5, "s")
    assert budget.reserve(DAY + 1, 0.3, "s", more=True)


def test_what_was_spent_beyond_the_sample_is_known_after_a_restart() -> None:
    budget = make_budget(1.0)
    budget.restore(10.0, "s", calls=1, usd=0.5, now=20.0, more=True)
    assert not budget.reserve(30.0, 0.1, "s", more=True)
    assert budget.reserve(30.0, 0.5, "s")

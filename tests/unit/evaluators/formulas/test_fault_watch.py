"""Fault watches: the vectors that the rule was given with, and what they leave open."""

import itertools
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.formulas.durations import LEAST, MOST, MOST_WAITING, Durations
from evaluators.formulas.fault_watch import (
    LIMIT,
    NEW_NORMAL,
    EarlierUse,
    FaultState,
    FaultWatch,
    upper_rate,
)
from tests.support.table import for_each

VECTORS = json.loads(
    Path(
        os.environ.get("SPANWISE_FAULT_VECTORS")
        or Path(__file__).parents[3] / "data" / "fault_watch_vectors.json"
    ).read_text()
)
COUNTS = ("n0", "f0", "n1", "f1", "m0", "g0", "m1", "g1")


@for_each("case", VECTORS)
def test_vectors(case: dict[str, Any]) -> None:
    """They were given with a delay: a fault was shown once it had lasted `settle_s`. Now it is when it is raised."""
    watch = FaultWatch()
    events: list[object] = []
    for index, use in enumerate(case["x"]):
        time = float(index * case["step_s"])
        event = watch.feed(use == "1", time, time)
        if event is not None:
            since = watch.state.fault.since if watch.state.fault else None
            events.append([index, event, *([] if since is None else [since])])
    past, waiting = watch.state.past, watch.state.waiting
    found = [*msgspec.structs.astuple(past), *msgspec.structs.astuple(waiting)]
    assert events == [
        [index, "raised" if event == "shown" else event, *since]
        for place, (index, event, *since) in enumerate(case["events"])
        if event != "shown" or case["events"][place - 1][1] != "raised"
    ]
    assert found == [case["counts_at_end"][name] for name in COUNTS]


def raised(fails: int = 60) -> FaultWatch:
    """60 uses that did not fail, one a minute, then `fails` that did."""
    watch = FaultWatch()
    for index in range(60 + fails):
        watch.feed(index >= 60, 60.0 * index, 60.0 * index)
    return watch


def counted(watch: FaultWatch) -> tuple[float, tuple[int, int], tuple[int, int]]:
    """Of the fault that is raised: when it began, and (uses, failures) since and before."""
    fault = watch.state.fault
    assert fault is not None
    before = (fault.uses_before, fault.failures_before)
    return fault.since, (fault.uses, fault.failures), before


def test_a_fault_begins_when_its_first_session_was_seen_not_when_it_settled() -> None:
    watch = FaultWatch()
    for index in range(80):
        watch.feed(index >= 60, 60.0 * index, 60.0 * index + 300)
    assert counted(watch)[0] == 3600.0


def test_a_session_that_comes_again_is_counted_once_before_and_once_since() -> None:
    watch = FaultWatch()
    for index in range(40):
        again = EarlierUse(index - 1, failed=False) if index % 2 else None
        watch.feed(False, index, index, again)
    for index in range(40, 50):
        watch.feed(index != 42, index, index)
        watch.feed(True, index, index, EarlierUse(index, failed=index != 42))

    assert counted(watch) == (40.0, (10, 10), (20, 0))


def test_after_seven_days_it_is_the_new_normal() -> None:
    watch = raised()
    fault = watch.state.fault
    assert fault is not None
    assert watch.state.past.uses == 60, "nothing is learned while it is raised"
    assert not watch.expire(fault.began + NEW_NORMAL - 1)
    assert watch.expire(fault.began + NEW_NORMAL)
    assert watch.state.fault is None
    assert watch.state.past == FaultState().past


def test_without_any_use_the_rate_is_unknown_and_its_bound_is_1() -> None:
    assert upper_rate(0, 0) == 1.0
    assert upper_rate(0, 20) == pytest.approx(4 / 24)


@given(st.lists(st.booleans(), max_size=400))
def test_sums_stay_between_0_and_the_limit_and_counts_lose_no_use(uses: list[bool]) -> None:
    watch = FaultWatch()
    for index, failed in enumerate(uses):
        watch.feed(failed, 60.0 * index, 60.0 * index)
        assert all(0 <= each.total <= LIMIT for each in watch.state.sums)
        if watch.state.fault is not None:
            break
        assert watch.state.past.uses + watch.state.waiting.uses == index + 1


@for_each("failing", ["01", "0110", "1011", "011"])
def test_what_never_failed_before_is_raised_within_15_failures(failing: str) -> None:
    watch = FaultWatch()
    for index in range(40):
        watch.feed(False, index, index)
    uses = failures = 0
    for use in itertools.cycle(failing):
        uses, failures = uses + 1, failures + (use == "1")
        if watch.feed(use == "1", 39 + uses, 39 + uses) or failures > 15:
            break

    good = failing.index("1")
    assert counted(watch) == (40 + good, (uses - good, failures), (40 + good, 0))


# --- which calls are slow, against what calls of the tool usually take ------------------------------------------------


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

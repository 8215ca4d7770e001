"""What an alarm about a label set's own past says, what it freezes, and what ends it."""

import random
from collections.abc import Mapping
from typing import Any, Self

import msgspec
import numpy as np
import pytest

from evaluators.formulas.drift import Sum
from evaluators.formulas.own_past import OwnPast
from evaluators.formulas.past_limits import DAY, PastLimits
from tests.support.table import for_each

START = 20_000 * DAY
"""A midnight."""
MINUTE = 60.0


class Agent:
    """An agent with a session every minute, 400 of them so far; its scores are uniform, minus a fall, plus a rise."""

    def __init__(self, limits: PastLimits | None = None, sessions: int = 400) -> None:
        self.past = OwnPast(limits)
        self.time = START
        self.sessions = 0
        self._random = random.Random(12)
        self.run(sessions)

    def run(self, sessions: int, by: float = 0.0, version: str = "1") -> None:
        """Feed sessions whose scores are uniform, and then moved towards 0 or 1 by a share."""
        for _ in range(sessions):
            self.time += MINUTE
            self.sessions += 1
            score = self._random.random()
            score = score * (1 + by) if by < 0 else 1 - (1 - score) * (1 - by)
            self.past.feed(str(self.sessions), score, self.time, version)

    def run_until_worse(self, version: str = "2") -> Self:
        for _ in range(500):
            self.run(1, -0.5, version)
            if self.past.worse:
                return self
        raise AssertionError("the drop was not noticed")

    def restored(self, strata: Mapping[int, bytes]) -> OwnPast:
        """What comes back of what is stored now, beside these strata."""
        state = self.past.state()
        return OwnPast(
            state=msgspec.convert(msgspec.to_builtins(state), type(state)), strata=strata
        )


def test_a_drop_is_noticed_with_its_beginning_and_its_depth_and_a_rise_is_another_alarm() -> None:
    agent, better = Agent(), Agent()
    assert agent.past.worse is None
    assert agent.past.progress < 1

    fell = agent.time
    agent.run_until_worse()
    better.run(100, 0.5)

    worse, rise = agent.past.worse, better.past.better
    assert worse is not None
    assert abs(worse.since - fell) <= 15 * MINUTE
    assert worse.began == agent.time
    assert worse.sessions == pytest.approx((agent.time - worse.since) / MINUTE + 1)
    assert worse.mean_rank == pytest.approx(0.25, abs=0.06)
    assert (agent.past.progress, agent.past.better) == (1, None)
    assert rise is not None
    assert rise.mean_rank == pytest.approx(0.75, abs=0.06)
    assert (better.past.better_progress, better.past.worse) == (1, None)
    assert better.past.progress < 1


@for_each("by", [-0.5, 0.5])
def test_an_alarm_in_either_direction_freezes_the_history(by: float) -> None:
    agent = Agent()
    agent.run(100, by)
    held = agent.past.history_samples

    agent.run(300, by)

    assert agent.past.history_samples == held < 500


def test_a_frozen_history_does_not_expire() -> None:
    agent = Agent(PastLimits(age=DAY / 4, hour_age=DAY / 4, week_age=DAY / 4)).run_until_worse()
    held = agent.past.history_samples

    agent.run(24 * 60, -0.5, "2")

    assert agent.past.worse is not None
    assert agent.past.history_samples == held
    assert agent.past.worse.sessions > 24 * 60
    assert agent.past.worse.mean_rank == pytest.approx(0.25, abs=0.06)


@for_each(
    "bad,by,version,most",
    [
        (0, 0.0, "2", 349),  # the newest scores end it
        (30, 0.3, "3", 20),  # a fixed version ends it within few sessions
        (0, 0.3, "1", 20),  # and so does going back to the version before the drop
    ],
)
def test_what_ends_an_alarm(bad: int, by: float, version: str, most: int) -> None:
    agent = Agent().run_until_worse()
    agent.run(bad, -0.5, "2")

    agent.run(19, by, version)
    assert agent.past.worse is not None
    agent.run(most - 19, by, version)

    assert agent.past.worse is None
    assert agent.past.progress < 1


def test_a_version_that_ran_beside_the_drop_does_not_end_an_alarm() -> None:
    agent = Agent()
    for _ in range(500):
        agent.run(3, -0.6, "2")
        agent.run(1, 0.0, "1")
        if agent.past.worse:
            break

    agent.run(40, 0.3, "1")

    assert agent.past.worse is not None


def test_after_a_week_the_alarm_is_the_new_normal_and_the_history_begins_again() -> None:
    agent = Agent().run_until_worse()
    worse = agent.past.worse
    assert worse is not None

    assert not agent.past.expire(worse.began + 7 * DAY - 1)
    assert agent.past.expire(worse.began + 7 * DAY)

    assert agent.past.worse is None
    assert agent.past.history_samples == 0
    agent.time += 7 * DAY
    agent.run(600, -0.5, "2")
    assert agent.past.worse is None
    assert agent.past.history_samples == 600


def test_strata_from_before_the_new_normal_are_not_read_back() -> None:
    """They stay stored until they are written again."""
    agent = Agent().run_until_worse()
    strata = agent.past.due()
    agent.past.written(strata)
    agent.past.expire(agent.time + 8 * DAY)
    agent.time += 8 * DAY
    agent.run(30, -0.5)

    assert strata
    assert agent.past.history_samples == agent.restored(strata).history_samples == 30


def test_an_older_time_counts_as_the_newest() -> None:
    agent = Agent(sessions=100)

    agent.past.feed("late", 0.5, START - 300 * DAY, "1")

    assert agent.past.history_samples == 101
    assert agent.past.state().time == agent.time


def test_versions_are_bounded() -> None:
    agent = Agent(sessions=0)
    for number in range(300):
        agent.run(1, version=str(number))
    agent.run_until_worse(version="bad")
    for number in range(300):
        agent.run(1, -0.5, f"build-{number}")

    state = agent.past.state()
    assert len(state.versions) == PastLimits().versions
    assert state.worse.alarm is not None
    assert len(state.worse.alarm.versions) == PastLimits().versions


@for_each("seed", range(5))
def test_a_drop_begins_with_the_first_worse_session_not_with_a_good_one_of_before(
    seed: int,
) -> None:
    """Good sessions that are all equal rank by chance, and the last of them may rank low."""
    past, time = OwnPast(), START
    for number in range(100):
        time += MINUTE
        past.feed(f"{seed} {number}", 1.0, time, "1")
    began = time + 7 * MINUTE
    for number in range(60):
        past.feed(f"{seed} worse {number}", 0.2, began + number, "1")

    assert past.worse is not None
    assert past.worse.since == began


# --- the mean run of each sum to a false alarm, exactly: the chain of Brook and Evans (1972) over uniform ranks -------


LIMITS = PastLimits()
SESSIONS = 576_000
"""Mean run of the four sums together: 0.05 alarms in 28,800 sessions."""


def transitions(slack: float, limit: float, states: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Probabilities from the middle of each of `states` intervals of [0, limit) to each interval; 0 is in the first."""
    width = limit / states
    middle = (np.arange(states) + 0.5) * width
    low, high = (middle - 0.5 - slack)[:, None], (middle + 0.5 - slack)[:, None]
    edge = np.arange(states) * width
    found = np.clip(np.minimum(high, edge + width) - np.maximum(low, edge), 0, None)
    found[:, 0] += np.clip(-low[:, 0], 0, None)
    return found


def mean_run(slack: float, limit: float, states: int = 500) -> float:
    """Uniform ranks from a sum of 0 until it reaches the limit."""
    chain = np.eye(states) - transitions(slack, limit, states)
    return float(np.linalg.solve(chain, np.ones(states))[0])


def test_the_mean_run_of_each_sum_is_four_times_that_of_all() -> None:
    """All sums together have less than the stated false alarms by the union bound: the rates of the four are added."""
    runs = [mean_run(*each) for each in zip(LIMITS.slacks, LIMITS.limits, strict=True)]

    assert [run / (4 * SESSIONS) for run in runs] == pytest.approx([1.0] * 4, rel=0.1)
    assert 28_800 * sum(1 / run for run in runs) <= 0.0525


def test_the_chain_is_that_of_the_code() -> None:
    """Mean runs of the code's own sums over uniform ranks, at limits low enough to be met often."""
    rng = np.random.default_rng(5)
    for slack, limit in ((0.02, 1.5), (0.16, 1.0)):
        runs: list[int] = []
        for _ in range(300):
            own, count = Sum(), 0
            while own.total < limit:
                own.feed(rng.random(), 1.0, slack)
                count += 1
            runs.append(count)

        assert np.mean(runs) == pytest.approx(mean_run(slack, limit), rel=0.15)

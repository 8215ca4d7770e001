"""Runs of one task: pass@k and pass^k over the newest of them, and how far they agree in what they wrote."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from scipy.special import betainc, betaincinv

from evaluators.formulas.agreement import (
    MOST_RUNS,
    MOST_WRITES,
    TaskRunsHistory,
    is_write,
    jaccard,
    writes,
)
from evaluators.formulas.pass_k import beta_probability, beta_quantile
from evaluators.formulas.task_runs import Run, newest, succeeded, task_passing
from tests.support.evaluating import a_call
from tests.support.table import for_each

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "data" / "passk_reference.json").read_text()
)["rows"]


@for_each("row", ROWS)
def test_the_published_rows(row: dict[str, Any]) -> None:
    trials = row["trials"]
    successes = [c for c, count in enumerate(row["hist"]) for _ in range(count)]
    tasks = [[Run(f"s-{at}", at, at < c) for at in range(trials)] for c in successes]
    for each in tasks:
        random.Random(1).shuffle(each)

    for at, passing in enumerate(task_passing(tasks, ks=range(1, trials + 1))):
        assert passing.pass_pow_k == pytest.approx(row["pass_hat_comb"][at], abs=1e-6)
        assert passing.pass_at_k == pytest.approx(row["pass_at_comb"][at], abs=1e-6)
        assert (passing.tasks, passing.left_out) == (len(tasks), 0)


def test_tasks_with_too_few_runs_are_left_out_and_counted() -> None:
    often = [Run(f"s-{at}", at, True) for at in range(3)]

    one, three, five = task_passing([often, [Run("s", 0, False)]])

    assert (one.tasks, one.left_out, one.pass_pow_k) == (2, 0, 0.5)
    assert (three.tasks, three.left_out, three.pass_pow_k) == (1, 1, 1.0)
    assert (five.tasks, five.left_out, five.pass_pow_k, five.pass_at_k) == (0, 2, None, None)


def test_only_the_newest_runs_count_and_a_session_once_at_its_last_end() -> None:
    runs = [Run(f"s-{at}", at, at >= 5) for at in range(10)]
    twice = [Run("s", 1, False), Run("s", 2, True)]

    (of_five,) = task_passing([reversed(runs)], window=5, ks=[3])
    (last,) = task_passing([twice + twice], ks=[1])

    assert (of_five.pass_pow_k, last.pass_pow_k, last.tasks) == (1.0, 1.0, 1)
    assert [run.ended for run in newest(runs, 2)] == [8, 9]


def test_the_success_stated_by_the_trace_wins() -> None:
    assert succeeded(False, True) is False
    assert succeeded(None, True) is True
    assert succeeded(None, None) is None


# --- the Beta distribution behind the posterior of both; the golden vectors have the formulas -------------------------


def _beta_cases() -> list[tuple[float, float, float]]:
    """(a, b, p) as attempts and priors make them, and far outside."""
    draw = random.Random(7)
    counts = [(1.0 + draw.randrange(200), 1.0 + draw.randrange(200)) for _ in range(100)]
    scales = [(10 ** draw.uniform(-4, 3), 10 ** draw.uniform(-4, 3)) for _ in range(150)]
    large = [(draw.uniform(0.01, 1200), draw.uniform(0.01, 1200)) for _ in range(100)]
    tails = (0.025, 0.975, 1e-6, 1 - 1e-6)
    return [(a, b, draw.choice((*tails, draw.random()))) for a, b in (*counts, *scales, *large)]


def test_quantiles_and_probabilities_of_the_beta_distribution_are_those_of_scipy() -> None:
    for a, b, p in _beta_cases():
        assert beta_quantile(a, b, p) == pytest.approx(float(betaincinv(a, b, p)), abs=1e-11)
        assert beta_probability(a, b, p) == pytest.approx(float(betainc(a, b, p)), abs=1e-11)


@for_each("x,below", [(-0.5, 0.0), (0.0, 0.0), (1.0, 1.0), (2.0, 1.0)])
def test_outside_its_interval_the_probability_is_0_or_1(x: float, below: float) -> None:
    assert beta_probability(2.0, 3.0, x) == below


# --- agreement of what they wrote -------------------------------------------------------------------------------------


@for_each(
    "name,writes",
    [
        *((name, True) for name in ("book_flight", "cancel", "send_certificate")),
        *((name, False) for name in ("get_user", "Search_flights", "lookup", "mine")),
        *((name, False) for name in ("transfer_to_human", "validate_card", "buscar_vuelos")),
    ],
)
def test_a_tool_that_writes_is_known_by_its_name(name: str, writes: bool) -> None:
    assert is_write(name, {"mine"}) is writes


def test_writes_are_calls_that_changed_something() -> None:
    booked = a_call("book", {"seat": 1, "class": "b"})
    same = a_call("book", {"class": "b", "seat": 1})
    failed = a_call("book", {"seat": 2}, error="sold out")
    read = a_call("get_seats", {})
    untold = a_call("book", None)

    assert len(writes([booked, same, failed, read, untold])) == 1


def run(*numbers: int) -> tuple[int, ...]:
    return numbers


def test_agreement_is_the_mean_over_the_other_runs() -> None:
    history = TaskRunsHistory()
    history.put(1, run(1, 2))
    assert history.agreement(2, run(1)) is None
    history.put(2, run(1))
    history.put(3, run(9))

    assert history.agreement(1, run(1, 2)) == (0.25, 2, 0)
    assert history.agreement(4, run(1)) == (0.5, 3, 1)


def test_runs_that_all_wrote_nothing_say_nothing() -> None:
    history = TaskRunsHistory()
    for number in range(3):
        history.put(number, run())

    assert history.agreement(9, run()) is None
    assert history.agreement(9, run(1)) == (0.0, 3, 0)
    assert jaccard(run(), run()) == 1.0


def test_the_newest_runs_count() -> None:
    history = TaskRunsHistory()
    for number in range(MOST_RUNS + 2):
        history.put(number, run(int(number < 1)))

    assert 0 not in list(history)
    assert history.agreement(99, run(0)) == (1.0, MOST_RUNS, MOST_RUNS)


def test_a_history_of_runs_is_the_same_after_it_was_stored() -> None:
    history = TaskRunsHistory()
    for number in range(5):
        history.put(number, run(number, number + 1))

    again = TaskRunsHistory(history.packed)

    assert again.packed == history.packed
    assert again.digest(3) == history.digest(3) != history.digest(4)
    assert again.agreement(3, run(3, 4)) == history.agreement(3, run(3, 4))


def test_of_very_many_writes_the_same_sample_is_compared() -> None:
    calls = [a_call("book", {"seat": seat}) for seat in range(MOST_WRITES + 50)]

    assert writes(calls) == writes(reversed(calls))
    assert len(writes(calls)) == MOST_WRITES

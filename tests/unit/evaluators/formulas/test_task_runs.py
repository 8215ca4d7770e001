"""Task runs: pass@k and pass^k over the newest runs of each task."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from evaluators.formulas.task_runs import Run, newest, succeeded, task_passing
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

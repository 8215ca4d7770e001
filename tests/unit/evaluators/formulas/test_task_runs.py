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


def a_run(task: str, at: int, *, success: bool, **fields: Any) -> Run:
    defaults: dict[str, Any] = {"service": "bot", "agent": "planner", "session_id": f"{task}-{at}"}
    return Run(task_id=task, ended=float(at), success=success, **{**defaults, **fields})


@for_each("row", ROWS)
def test_the_published_rows(row: dict[str, Any]) -> None:
    trials = row["trials"]
    tasks = [c for c, count in enumerate(row["hist"]) for _ in range(count)]
    runs = [
        a_run(str(task), at, success=at < c) for task, c in enumerate(tasks) for at in range(trials)
    ]
    random.Random(1).shuffle(runs)

    (found,) = task_passing(runs, ks=range(1, trials + 1)).values()

    for at, passing in enumerate(found):
        assert passing.pass_pow_k == pytest.approx(row["pass_hat_comb"][at], abs=1e-6)
        assert passing.pass_at_k == pytest.approx(row["pass_at_comb"][at], abs=1e-6)
        assert (passing.tasks, passing.left_out) == (len(tasks), 0)


def test_there_are_forty_seven_published_rows() -> None:
    assert len(ROWS) == 47


def test_tasks_with_too_few_runs_are_left_out_and_counted() -> None:
    runs = [a_run("a", at, success=True) for at in range(3)] + [a_run("b", 0, success=False)]

    one, three, five = task_passing(runs)["bot", "planner"]

    assert (one.tasks, one.left_out, one.pass_pow_k) == (2, 0, 0.5)
    assert (three.tasks, three.left_out, three.pass_pow_k) == (1, 1, 1.0)
    assert (five.tasks, five.left_out, five.pass_pow_k, five.pass_at_k) == (0, 2, None, None)


def test_only_the_newest_runs_count() -> None:
    runs = [a_run("a", at, success=at >= 5) for at in range(10)]

    (passing,) = task_passing(reversed(runs), window=5, ks=[3])["bot", "planner"]

    assert passing.pass_pow_k == 1.0
    assert [run.ended for run in newest(runs, 2)["bot", "planner", "a"]] == [8.0, 9.0]


def test_a_session_counts_once_at_its_last_end() -> None:
    runs = [
        a_run("a", 1, success=False, session_id="s"),
        a_run("a", 2, success=True, session_id="s"),
    ]

    (passing,) = task_passing(runs + runs, ks=[1])["bot", "planner"]

    assert (passing.tasks, passing.pass_pow_k) == (1, 1.0)


def test_agents_and_services_are_kept_apart() -> None:
    runs = [a_run("a", 1, success=True), a_run("a", 1, success=False, agent="writer")]

    found = task_passing(runs, ks=[1])

    assert {key: each[0].pass_pow_k for key, each in found.items()} == {
        ("bot", "planner"): 1.0,
        ("bot", "writer"): 0.0,
    }


def test_the_success_stated_by_the_trace_wins() -> None:
    assert succeeded(False, True) is False
    assert succeeded(None, True) is True
    assert succeeded(None, None) is None

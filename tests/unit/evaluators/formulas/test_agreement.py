"""Runs of one task are compared by what they wrote."""

from __future__ import annotations

import pytest

from evaluators.formulas.agreement import (
    MOST_RUNS,
    TaskRunsHistory,
    is_write,
    jaccard,
    writes,
)
from tests.support.evaluating import a_call


@pytest.mark.parametrize(
    ("name", "writes"),
    [
        ("book_flight", True),
        ("cancel", True),
        ("get_user", False),
        ("Search_flights", False),
        ("lookup", False),
        ("transfer_to_human", False),
        ("send_certificate", True),
        ("validate_card", False),
        ("buscar_vuelos", False),
        ("mine", False),
    ],
)
def test_a_tool_that_writes_is_known_by_its_name(name: str, *, writes: bool) -> None:
    assert is_write(name, {"mine"}) is writes


def test_writes_are_calls_that_changed_something() -> None:
    booked = a_call("book", {"seat": 1, "class": "b"})
    same = a_call("book", {"class": "b", "seat": 1})
    failed = a_call("book", {"seat": 2}, error="sold out")
    read = a_call("get_seats", {})

    assert len(writes([booked, same, failed, read])) == 1


def run(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


def test_agreement_is_the_mean_over_the_other_runs() -> None:
    history = TaskRunsHistory()
    history.put("a", run(1, 2))
    assert history.agreement("b", run(1)) is None
    history.put("b", run(1))
    history.put("c", run(9))

    assert history.agreement("a", run(1, 2)) == (0.25, 2)
    assert history.agreement("new", run(1)) == (0.5, 3)


def test_runs_that_all_wrote_nothing_say_nothing() -> None:
    history = TaskRunsHistory()
    for name in "abc":
        history.put(name, run())

    assert history.agreement("d", run()) is None
    assert history.agreement("d", run(1)) == (0.0, 3)
    assert jaccard(run(), run()) == 1.0


def test_the_newest_runs_count() -> None:
    history = TaskRunsHistory()
    forgotten = [history.put(str(n), run(n < 1)) for n in range(MOST_RUNS + 2)]

    assert [each for each in forgotten if each] == ["0"]
    assert history.agreement("x", run(0)) == (1.0, MOST_RUNS)

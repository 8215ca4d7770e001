"""Runs of one task are compared by what they wrote."""

from evaluators.formulas.agreement import (
    MOST_RUNS,
    MOST_WRITES,
    TaskRunsHistory,
    is_write,
    jaccard,
    writes,
)
from tests.support.evaluating import a_call
from tests.support.table import for_each


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

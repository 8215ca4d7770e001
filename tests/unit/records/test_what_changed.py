"""What changed between two sides: ranked causes first, then differences; nothing where nothing clearly did."""

from collector.records.moved import EvaluatorScores
from collector.records.what_changed import SessionSide, in_words, what_changed
from evaluators.formulas.differences import Fact


def session(
    *,
    fails: bool = False,
    user: str = "acme",
    seconds: float = 1.0,
    cost: float | None = 0.01,
    score: float = 0.9,
) -> SessionSide:
    facts: frozenset[Fact] = frozenset({("user", user), ("tool", "find_order")})
    scores = {"coherence": EvaluatorScores(score, 1, 1, score < 0.5)}
    return SessionSide(facts, {"find_order": fails, "look_up": False}, seconds, cost, scores)


GOOD = [session(seconds=1 + at % 7 / 10, score=0.8 + at % 5 / 50) for at in range(60)]


def test_a_tool_that_fails_more_comes_first_with_its_numbers() -> None:
    since = [
        session(fails=at < 9, user="globex", seconds=5, cost=0.05, score=0.2) for at in range(10)
    ]

    changed = what_changed(GOOD, since)

    assert changed["tools"] == [
        {"tool": "find_order", "uses": 10, "failures": 9, "uses_before": 60, "failures_before": 0}
    ]
    (moved,) = changed["evaluators"]
    assert (moved["evaluator"], moved["since"], moved["rank"]) == ("coherence", 0.2, 0.0)
    assert changed["seconds"] == {"before": 1.3, "since": 5}
    assert changed["cost"] == {"before": 0.01, "since": 0.05}
    assert changed["differs"] == [{"kind": "user", "value": "globex", "before": 0.0, "since": 1.0}]
    assert in_words(changed) == [
        "find_order fails: 9 of 10 sessions that used it, 0 of 60 before",
        "coherence moved: mean 0.84 before, 0.20 since, rank 0.00",
        "seconds a session: median 1.3 s before, 5 s since",
        "cost a session: median 0.01 USD before, 0.05 USD since",
        "different, not necessarily a cause: user globex in 100% of sessions, 0% before",
    ]


def test_where_nothing_changed_nothing_is_said() -> None:
    changed = what_changed(GOOD, GOOD[:20])

    assert changed == {
        "tools": [],
        "fixed": [],
        "evaluators": [],
        "seconds": None,
        "cost": None,
        "differs": [],
    }
    assert in_words(changed) == []


def test_a_tool_that_was_fixed_is_named_with_the_numbers_of_both_sides() -> None:
    broken = [session(fails=at < 9) for at in range(10)]

    changed = what_changed(broken, GOOD)

    counts = {"uses": 60, "failures": 0, "uses_before": 10, "failures_before": 9}
    assert (changed["tools"], changed["fixed"]) == ([], [{"tool": "find_order", **counts}])
    fixed = "find_order is fixed: fails in 0 of 60 sessions that used it, 9 of 10 before"
    assert in_words(changed)[0] == fixed


def test_what_does_not_differ_as_printed_is_not_listed() -> None:
    before = [session(seconds=1.0001, score=0.9001) for _ in range(60)]
    since = [session(seconds=1.0002, score=0.9002) for _ in range(60)]

    changed = what_changed(before, since)

    assert (changed["seconds"] is not None, len(changed["evaluators"])) == (True, 1)
    assert in_words(changed) == []


def test_an_empty_side_is_no_change() -> None:
    assert in_words(what_changed([], GOOD)) == []
    assert in_words(what_changed(GOOD, [])) == []


def test_a_failure_that_was_as_frequent_before_and_an_unknown_cost_are_no_change() -> None:
    half = [session(fails=bool(at % 2), cost=None) for at in range(40)]

    changed = what_changed(half, half[:20])

    assert changed["tools"] == []
    assert changed["cost"] is None

"""Every evaluator runs by itself, and what it returns becomes an outcome by one set of rules."""

import math
from collections.abc import Callable
from typing import Any

from evaluators.declare import evaluator
from evaluators.expectations import Expectation
from evaluators.model import Method, Outcome, Previous, Score, Trace
from evaluators.plan import Plan, make_plan
from evaluators.providers.scripted import ScriptedEmbedder
from evaluators.resources import History
from evaluators.run import score_trace
from tests.support.evaluating import OURS, HashEmbedder, a_trace, error_type, plan_of
from tests.support.table import for_each

EVERYTHING = make_plan(OURS, {}, embedder="hash", expectations=True)


def outcome_of(
    score: Callable[[], Score | float | None],
    *,
    method: Method | None = None,
    threshold: float = 0.5,
) -> Outcome:
    @evaluator(version="1", threshold=threshold, method=method)
    def tried(trace: Trace) -> Score | float | None:
        """Whatever the test wants."""
        return score()

    (outcome,) = score_trace(Plan(trace=tuple(plan_of(tried))), a_trace())
    return outcome


def previous(*outputs: str | None) -> tuple[Previous, ...]:
    return tuple(
        Previous(trace_id=f"{n}", digest=f"d{n}", output=text) for n, text in enumerate(outputs)
    )


def test_a_score_has_four_decimals_and_success_compares_the_value_as_returned() -> None:
    outcome = outcome_of(lambda: Score(value=0.499_99), threshold=0.5)

    assert (outcome.state, outcome.score, outcome.success) == ("scored", 0.5, False)


@for_each(
    "returned,method,kind",
    [
        *(
            (Score(value=n), None, "invalid_score")
            for n in (math.nan, math.inf, -0.1, 1.0001, None)
        ),
        (Score(value=math.nan), "custom", "invalid_score"),
        (10**400, None, "invalid_score"),
        ("high", None, "invalid_score"),
        *(
            (Score(value=1.0, metadata={"it": it}), "custom", "invalid_metadata")
            for it in ({1, 2}, 1 << 70, math.nan, "\ud800", "x" * (17 << 10))
        ),
        (Score(value=1.0, explanation="\ud800"), "custom", "invalid_metadata"),
        (Score(value=1.0, explanation="x" * (17 << 10)), "custom", "invalid_metadata"),
    ],
)
def test_what_is_no_score_or_fits_in_no_record_fails(
    returned: Any, method: Method | None, kind: str
) -> None:
    outcome = outcome_of(lambda: returned, method=method)

    assert (error_type(outcome), outcome.success) == (kind, None)


@for_each(
    "returned,method,score",
    [
        (Score(value=-3.0), "custom", 0.0),
        (Score(value=1.7), "custom", 1.0),
        (Score(value=math.inf), "custom", 1.0),
        (Score(value=0.3), "custom", 0.3),
        *((0.25, None, 0.25), (1, None, 1.0), (True, None, 1.0), (False, None, 0.0)),
    ],
)
def test_a_third_party_s_value_is_clamped_and_a_number_or_a_truth_value_is_a_score(
    returned: Any, method: Method | None, score: float
) -> None:
    outcome = outcome_of(lambda: returned, method=method)

    assert (outcome.state, outcome.score) == ("scored", score)


@for_each("returned,assumed", [(None, None), (Score.assume(1.0, "no tools"), 1.0)])
def test_nothing_to_judge_has_no_score(returned: Score | None, assumed: float | None) -> None:
    outcome = outcome_of(lambda: returned)

    assert (outcome.state, outcome.score, outcome.assumed) == ("not_applicable", None, assumed)
    assert (outcome.reason, outcome.success) == ("nothing_to_judge", None)


def test_a_trace_in_which_no_agent_did_anything_is_applicable_to_nothing() -> None:
    trace = a_trace(model_calls=())

    outcomes = score_trace(EVERYTHING, trace, embedder=HashEmbedder())

    assert {(each.state, each.reason, each.assumed) for each in outcomes} == {
        ("not_applicable", "not_a_turn", None)
    }
    assert len(outcomes) == len(EVERYTHING.trace)


def test_the_trace_s_texts_are_embedded_in_one_call() -> None:
    trace = a_trace(input="question", output="answer two")
    texts = ["answer one", "answer two", "question"]
    embedder = ScriptedEmbedder(dict.fromkeys(texts, (1.0, 2.0)))

    outcomes = score_trace(EVERYTHING, trace, history=previous("answer one"), embedder=embedder)

    assert [sorted(asked) for asked in embedder.asked] == [texts]
    assert {each.state for each in outcomes if each.method == "embedding"} == {"scored"}


def test_history_is_the_newest_three_and_named_in_the_outcome() -> None:
    seen: list[History] = []

    @evaluator(version="1")
    def looking(trace: Trace, *, before: History) -> Score:
        """Looks back."""
        seen.append(before)
        return Score(value=1.0)

    plan = Plan(trace=plan_of(looking).plugins)

    (outcome,) = score_trace(plan, a_trace(), history=previous("a", "b", "c", "d"))

    assert [each.output for each in seen[0].previous] == ["b", "c", "d"]
    assert outcome.compared == ("d1", "d2", "d3")


def test_the_expectation_used_is_named_in_the_outcome() -> None:
    expectation = Expectation(output="It is sunny in Paris.")

    outcomes = score_trace(EVERYTHING, a_trace(), embedder=HashEmbedder(), expectation=expectation)

    by_name = {each.evaluator: each for each in outcomes}
    assert by_name["exact_match"].score == 1.0
    assert by_name["exact_match"].expectation == expectation.digest
    assert by_name["confidence"].expectation is None
    assert by_name["tool_expectations"].reason == "nothing_to_judge"

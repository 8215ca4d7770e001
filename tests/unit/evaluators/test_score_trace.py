"""Every evaluator runs by itself, and what it returns becomes an outcome by one set of rules."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from evaluators.declare import declared, evaluator
from evaluators.expectations import Expectation
from evaluators.model import Method, Outcome, Previous, Score, ToolCall, Trace
from evaluators.plan import Plan, Settings, make_plan
from evaluators.providers.scripted import ScriptedEmbedder
from evaluators.registry import Registry
from evaluators.resources import History
from evaluators.run import score_trace
from tests.support.evaluating import OURS, HashEmbedder, a_call, a_trace

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

    spec = declared(tried)
    assert spec is not None
    due = tuple(make_plan(Registry([spec]), {}, embedder=None))
    (outcome,) = score_trace(Plan(trace=due), a_trace())
    return outcome


def previous(*outputs: str | None) -> tuple[Previous, ...]:
    return tuple(
        Previous(trace_id=f"{n}", digest=f"d{n}", output=text) for n, text in enumerate(outputs)
    )


def test_a_score_has_four_decimals_and_success_compares_the_value_as_returned() -> None:
    outcome = outcome_of(lambda: Score(value=0.499_99), threshold=0.5)

    assert (outcome.state, outcome.score, outcome.success) == ("scored", 0.5, False)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.000_1, None])
def test_a_value_that_is_no_score_fails(value: float | None) -> None:
    outcome = outcome_of(lambda: Score(value=value))

    assert (outcome.state, outcome.score, outcome.success) == ("failed", None, None)
    assert outcome.error is not None
    assert outcome.error.type == "invalid_score"


@pytest.mark.parametrize(
    ("value", "clamped"), [(-3.0, 0.0), (1.7, 1.0), (math.inf, 1.0), (0.3, 0.3)]
)
def test_a_third_party_s_value_is_clamped(value: float, clamped: float) -> None:
    outcome = outcome_of(lambda: Score(value=value), method="custom")

    assert (outcome.state, outcome.score) == ("scored", clamped)


def test_a_third_party_s_nan_fails() -> None:
    assert outcome_of(lambda: Score(value=math.nan), method="custom").state == "failed"


@pytest.mark.parametrize("value", [{1, 2}, 1 << 70, math.nan, "\ud800", "x" * (17 << 10)])
def test_a_third_party_s_metadata_must_be_json_that_a_record_can_hold(value: Any) -> None:
    outcome = outcome_of(lambda: Score(value=1.0, metadata={"it": value}), method="custom")

    assert outcome.error is not None
    assert outcome.error.type == "invalid_metadata"


@pytest.mark.parametrize("text", ["\ud800", "x" * (17 << 10)])
def test_a_third_party_s_explanation_must_be_text_that_a_record_can_hold(text: str) -> None:
    outcome = outcome_of(lambda: Score(value=1.0, explanation=text), method="custom")

    assert outcome.error is not None
    assert outcome.error.type == "invalid_metadata"


def test_an_exception_is_one_evaluator_s_outcome_only() -> None:
    def broken() -> Score:
        raise RuntimeError("x" * 5000)

    outcome = outcome_of(broken)

    assert (outcome.state, outcome.score) == ("failed", None)
    assert outcome.error is not None
    assert outcome.error.type == "exception"
    assert outcome.error.message.startswith("RuntimeError: xxx")
    assert len(outcome.error.message) <= 500


def test_something_that_is_no_score_at_all_fails() -> None:
    outcome = outcome_of(lambda: "high")  # type: ignore[arg-type, return-value]

    assert outcome.error is not None
    assert outcome.error.message == "returned str, not a Score"


@pytest.mark.parametrize(("value", "score"), [(0.25, 0.25), (1, 1.0), (True, 1.0), (False, 0.0)])
def test_a_number_or_a_truth_value_is_a_score(value: float, score: float) -> None:
    assert outcome_of(lambda: value).score == score


def test_none_is_nothing_to_judge() -> None:
    outcome = outcome_of(lambda: None)

    assert (outcome.state, outcome.score, outcome.reason) == (
        "not_applicable",
        None,
        "nothing_to_judge",
    )


def test_a_number_too_large_for_a_float_fails_its_evaluator() -> None:
    outcome = outcome_of(lambda: 10**400)

    assert outcome.error is not None
    assert outcome.error.type == "invalid_score"


def test_nothing_to_judge_has_an_assumed_number_and_no_score() -> None:
    outcome = outcome_of(lambda: Score.assume(1.0, "no tools"))

    assert (outcome.state, outcome.score, outcome.assumed) == ("not_applicable", None, 1.0)
    assert (outcome.reason, outcome.success) == ("nothing_to_judge", None)


def test_a_trace_in_which_no_agent_did_anything_is_applicable_to_nothing() -> None:
    trace = a_trace(model_calls=())

    outcomes = score_trace(EVERYTHING, trace, embedder=HashEmbedder())

    assert {(each.state, each.reason, each.assumed) for each in outcomes} == {
        ("not_applicable", "not_a_turn", None)
    }
    assert len(outcomes) == len(EVERYTHING.trace)


def test_only_limits_what_runs() -> None:
    outcomes = score_trace(EVERYTHING, a_trace(), embedder=HashEmbedder(), only=["loop_detection"])

    assert [each.evaluator for each in outcomes] == ["loop_detection"]


def test_the_trace_s_texts_are_embedded_in_one_call() -> None:
    trace = a_trace(input="question", output="answer two")
    vectors: dict[str, tuple[float, float]] = dict.fromkeys(
        ("question", "answer two", "answer one"), (1.0, 2.0)
    )
    embedder = ScriptedEmbedder(vectors)

    outcomes = score_trace(EVERYTHING, trace, history=previous("answer one"), embedder=embedder)

    assert len(embedder.asked) == 1
    assert sorted(embedder.asked[0]) == ["answer one", "answer two", "question"]
    assert {each.state for each in outcomes if each.method == "embedding"} == {"scored"}


def test_history_is_the_newest_three_and_named_in_the_outcome() -> None:
    seen: list[History] = []

    @evaluator(version="1")
    def looking(trace: Trace, *, before: History) -> Score:
        """Looks back."""
        seen.append(before)
        return Score(value=1.0)

    spec = declared(looking)
    assert spec is not None
    plan = make_plan(Registry([spec]), {}, embedder=None)

    (outcome,) = score_trace(
        Plan(trace=plan.plugins), a_trace(), history=previous("a", "b", "c", "d")
    )

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


def test_without_an_expectation_its_evaluators_say_so() -> None:
    outcomes = score_trace(EVERYTHING, a_trace(), embedder=HashEmbedder(), only=["contains"])

    assert [(each.state, each.reason) for each in outcomes] == [
        ("not_applicable", "no_expectations")
    ]


def test_threshold_and_success_stand_in_the_metadata_where_the_document_lists_them() -> None:
    plan = make_plan(
        OURS, {"confidence": Settings(threshold=0.9)}, embedder=None, only=["confidence"]
    )

    (outcome,) = score_trace(plan, a_trace())

    assert outcome.metadata == {"threshold": 0.9, "success": True}
    assert (outcome.threshold, outcome.success) == (0.9, True)


def test_an_embedder_that_fails_fails_only_evaluators_that_embed() -> None:
    outcomes = score_trace(
        EVERYTHING, a_trace(tool_calls=(a_call(),)), embedder=ScriptedEmbedder({})
    )

    states = {each.evaluator: each.state for each in outcomes}
    assert states["coherence"] == "failed"
    assert states["confidence"] == "scored"
    assert states["tool_correctness"] == "scored"


def test_the_example_of_the_guide_works() -> None:
    @evaluator(version="1", threshold=0.9)
    def tool_success(trace: Trace) -> Score:
        """Share of the trace's tool calls that did not end in error."""
        calls = trace.tool_calls
        if not calls:
            return Score.assume(1.0, "the trace called no tools")
        failed = tuple(call.span_id for call in calls if call.error and call.span_id)
        return Score(
            value=1 - len(failed) / len(calls),
            explanation=f"{len(failed)} of {len(calls)} tool calls failed",
            evidence=failed,
        )

    calls = (ToolCall(name="a", span_id="1", error="no"), ToolCall(name="a", span_id="2"))

    score = tool_success(a_trace(tool_calls=calls))

    assert (score.value, score.evidence) == (0.5, ("1",))

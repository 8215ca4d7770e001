"""Configuration becomes a plan, or one clear error; what its evaluators return becomes outcomes by one set of rules."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from evaluators.declare import declared, evaluator
from evaluators.errors import SettingsError
from evaluators.expectations import Expectation
from evaluators.model import JSON, Method, Outcome, Previous, Score, Trace
from evaluators.plan import Configured, Plan, Settings, make_plan
from evaluators.providers.scripted import ScriptedEmbedder
from evaluators.providers.wordllama import MODEL
from evaluators.registry import Registry
from evaluators.resources import History
from evaluators.run import score_trace
from tests.support.evaluating import OURS, HashEmbedder, a_trace, error_type, plan_of
from tests.support.table import for_each


def names(configured: tuple[Configured, ...]) -> list[str]:
    return [each.spec.name for each in configured]


def one(plan: Plan, name: str) -> Configured:
    return next(each for each in (*plan.trace, *plan.session) if each.spec.name == name)


def test_without_settings_all_whose_needs_are_met_run() -> None:
    plan = make_plan(OURS, {}, embedder=MODEL)

    elsewhere = {"judge", "expectations", "earlier_sessions"}
    met = {spec.name for spec in OURS if spec.on and elsewhere.isdisjoint(spec.needs)}
    assert {*names(plan.trace), *names(plan.session)} == met
    assert met >= {"tool_correctness", "loop_detection", "runaway", "agent_reliability", "cost"}
    assert not met & {"task_completion", "exact_match"}
    assert plan.judged == ()
    assert all(each.emit and each.final for each in (*plan.trace, *plan.session))


def test_without_an_embedder_evaluators_that_embed_are_off_and_expectations_turn_theirs_on() -> (
    None
):
    plan = make_plan(OURS, {}, embedder=None, expectations=True)

    assert not {"coherence", "loop_detection"} & set(names(plan.trace))
    theirs = {"exact_match", "contains", "regex", "json_schema", "tool_expectations"}
    assert theirs <= set(names(plan.trace))


def test_who_compares_texts_and_keeps_no_sketch_waits_for_a_verdict() -> None:
    @evaluator(version="1", name="echoes")
    def echoes(trace: Trace, *, history: History) -> Score:
        return Score(value=float(len(history.previous)))

    plan = make_plan(Registry(filter(None, [*OURS, declared(echoes)])), {}, embedder=MODEL)

    assert names(plan.plugins) == ["echoes"]
    assert "echoes" not in names(plan.trace)
    assert "loop_detection" in names(plan.trace), "it has a sketch"


def test_only_computes_what_the_named_ones_read_without_emitting_it() -> None:
    plan = make_plan(OURS, {}, embedder=MODEL, only=["agent_reliability"])

    assert names(plan.trace) == ["confidence", "loop_detection", "tool_correctness"]
    assert [each.spec.name for each in plan if each.emit] == ["agent_reliability"]


def test_a_judge_makes_the_siblings_stand_ins() -> None:
    plan = make_plan(OURS, {}, embedder=MODEL, judge=True)

    assert one(plan, "confidence").final is False
    assert one(plan, "coherence").final is True
    assert {"task_completion", "plan_quality", "confidence"} <= set(names(plan.judged))
    assert all(each.final for each in plan.judged)


@for_each("model,more", [(MODEL, ()), ("text-embedding-3-small", ("coherence",)), (None, ())])
def test_coherence_is_a_signal_only_where_its_scale_is_calibrated(
    model: str | None, more: tuple[str, ...]
) -> None:
    found = one(make_plan(OURS, {}, embedder=model), "agent_reliability").options["signals"]

    assert found == ("confidence", "loop_detection", "tool_correctness", *more)


def test_the_options_digest_changes_with_everything_a_user_can_set() -> None:
    def digest(model: str | None = MODEL, threshold: float | None = None, **options: JSON) -> str:
        settings = {"agent_reliability": Settings(threshold=threshold, options=options)}
        return one(make_plan(OURS, settings, embedder=model), "agent_reliability").options_digest

    changed = digest(threshold=0.7), digest(signal_weights={"confidence": 2}), digest("x")

    assert len({digest(), digest(), *changed}) == 4


def test_the_embedder_s_model_is_part_of_an_embedded_evaluator_s_digest_only() -> None:
    one_model, another = make_plan(OURS, {}, embedder=MODEL), make_plan(OURS, {}, embedder="other")

    assert one(one_model, "coherence").options_digest != one(another, "coherence").options_digest
    assert one(one_model, "confidence").options_digest == one(another, "confidence").options_digest


WEIGHTS: dict[str, JSON] = {"signal_weights": {"confidence": -1}}


@for_each(
    "name,settings,message",
    [
        ("nope", Settings(), "nope: no evaluator of that name"),
        (
            "agent_reliability",
            Settings(options=WEIGHTS),
            "agent_reliability.signal_weights: Expected `float` >= 0.0",
        ),
        (
            "agent_reliability",
            Settings(options={"signals": ["mood"]}),
            "agent_reliability.signals: Invalid enum value 'mood'",
        ),
        ("confidence", Settings(options={"depth": 3}), "confidence.depth: no such option"),
        ("confidence", Settings(threshold=1.5), "confidence.threshold: expected a number"),
        ("latency", Settings(model="gpt"), "latency.model: `latency` asks no model"),
        ("coherence", Settings(enabled=True), "coherence: needs embedder"),
        ("exact_match", Settings(enabled=True), "exact_match: needs expectations"),
        ("task_completion", Settings(enabled=True), "task_completion: needs judge"),
    ],
)
def test_a_wrong_setting_is_an_error_that_begins_with_its_path(
    name: str, settings: Settings, message: str
) -> None:
    with pytest.raises(SettingsError, match=rf"^evaluators\.{message}"):
        make_plan(OURS, {name: settings}, embedder=None)
    with pytest.raises(SettingsError, match=r"^evaluators\.nope: "):
        make_plan(OURS, {}, embedder=None, only=["nope"])


def test_what_is_switched_off_does_not_run_even_as_a_signal() -> None:
    settings = {"confidence": Settings(enabled=False)}

    plan = make_plan(OURS, settings, embedder=None, only=["agent_reliability"])

    assert names(plan.trace) == ["tool_correctness"]


# --- every evaluator runs by itself -----------------------------------------------------------------------------------


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


def test_without_an_expectation_its_evaluators_say_so() -> None:
    outcomes = score_trace(EVERYTHING, a_trace(), embedder=HashEmbedder(), only=["contains"])

    assert [(each.state, each.reason) for each in outcomes] == [
        ("not_applicable", "no_expectations")
    ]

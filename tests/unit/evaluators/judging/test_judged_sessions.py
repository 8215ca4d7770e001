"""agentic and conversation_quality: from a judge's answers to the documents' fields."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from evaluators.dialects.decoding.values import as_dict
from evaluators.errors import SettingsError
from evaluators.expectations import Expectation, ExpectedTool
from evaluators.formulas import connexity
from evaluators.formulas.connexity import VerdictError, outcomes, resolve_weights
from evaluators.matching.tool_match import Use, match_tools
from evaluators.model import Outcome, Trace
from evaluators.plan import Settings, make_plan
from evaluators.providers.scripted import ScriptedJudge
from tests.support.evaluating import OURS, a_call, a_trace, error_type
from tests.support.judging import answering, judge_turns, judged
from tests.support.table import for_each

TRACES = [a_trace(trace_id=str(at), output=f"answer {at}") for at in range(4)]
EXPECTED = {trace.trace_id: Expectation(output="right") for trace in TRACES}


def correct(*scores: float) -> Any:
    def change(_: str, answer: dict[str, Any]) -> Any:
        for verdict, score in zip(answer["agentic"]["verdicts"], scores, strict=True):
            verdict["correctness"] = score
        return answer

    return answering(change)


async def agentic(
    asked: ScriptedJudge,
    traces: Sequence[Trace] = TRACES,
    expected: Mapping[str, Expectation] | None = EXPECTED,
    **settings: Settings,
) -> Outcome:
    due = judged("agentic", **settings)
    return (await judge_turns(traces, asked, due, expectations=expected)).outcomes[0]


FIELDS = """session_id total_interactions correct_interactions is_fully_correct threshold correctness_scores
correct_indices tool_correctness_scores k pass_at_k pass_at_k_ci_low pass_at_k_ci_high pass_pow_k pass_pow_k_ci_low
pass_pow_k_ci_high"""


async def test_all_interactions_are_judged_in_one_call() -> None:
    asked = correct(0.7, 1.0, 0.69, 1.0)

    outcome = await agentic(asked)

    assert len(asked.asked) == 1
    assert (outcome.score, outcome.success, outcome.threshold) == (0.75, False, 0.7)
    assert outcome.metadata["correct_indices"] == [0, 1, 3]
    assert outcome.metadata["pass_at_k"] == pytest.approx(1 - 0.25**3)
    assert outcome.metadata["pass_pow_k"] == pytest.approx(0.75**3)
    assert list(outcome.metadata) == FIELDS.split()


async def test_its_options_are_the_document_s() -> None:
    settings = Settings(threshold=0.9, options={"k": 2, "mode": "bayesian", "ci_level": 0.9})

    outcome = await agentic(correct(0.9, 0.9, 0.9, 0.8), agentic=settings)

    assert (outcome.score, outcome.threshold) == (0.75, 0.9)
    assert outcome.metadata["k"] == 2
    assert outcome.metadata["pass_at_k_ci_low"] < outcome.metadata["pass_at_k"]


async def test_only_interactions_with_an_expected_output_count() -> None:
    expected = {"1": EXPECTED["1"], "2": Expectation(regex="x")}

    outcome = await agentic(correct(1.0), expected=expected)

    assert (outcome.score, outcome.success, outcome.coverage) == (1.0, True, (1, 1))
    for nothing in (None, {}, {"1": Expectation(regex="x")}):
        asked = answering()
        assert (await agentic(asked, expected=nothing)).reason == "no_expectations"
        assert asked.asked == []


async def test_turns_without_content_are_no_wrong_answers() -> None:
    blind = [replace(trace, output=None, input=None, gaps=("no_content",)) for trace in TRACES]

    async def judged_with(*seen: int) -> Outcome:
        traces = [TRACES[at] if at in seen else blind[at] for at in range(4)]
        return await agentic(correct(*([1.0] * len(seen))), traces)

    most, few, nothing = await judged_with(0, 2, 3), await judged_with(2), await judged_with()

    assert (most.score, most.success, most.coverage) == (1.0, True, (4, 3))
    assert (few.state, few.reason, few.coverage) == ("skipped", "low_coverage", (4, 1))
    assert (nothing.state, nothing.reason) == ("not_applicable", "no_content")


async def test_tool_correctness_is_null_without_expected_or_used_tools() -> None:
    used = replace(TRACES[0], tool_calls=(a_call("calculator", {"a": 5}),))
    tools = (ExpectedTool(name="calculator", arguments={"a": 5}),)
    expected = {
        "0": Expectation(output="8", tools=tools, answer_uses_tools=True),
        "1": Expectation(output="8", tools=tools),
        "2": Expectation(output="8"),
    }

    traces = [used, TRACES[1], replace(used, trace_id="2")]
    outcome = await agentic(correct(1, 1, 1), traces, expected)

    first, *others = outcome.metadata["tool_correctness_scores"]
    assert first["overall_correctness"] == 1.0
    assert "selection 1.00" in first["reasoning"]
    assert others == [None, None]


async def test_a_missing_interaction_is_asked_for_again_and_then_fails() -> None:
    def drop(_: str, answer: dict[str, Any]) -> Any:
        answer["agentic"]["verdicts"].pop()
        return answer

    asked = answering(drop)
    outcome = await agentic(asked)

    assert len(asked.asked) == 2
    assert error_type(outcome) == "parse_error"
    assert "3 verdicts for 4" in str(outcome.error)


async def test_turns_that_cannot_be_read_are_not_judged() -> None:
    asked = answering()

    outcome = await agentic(asked, [replace(trace, unread="undecodable") for trace in TRACES])

    assert outcome.state == "not_applicable"
    assert asked.asked == []


# --- conversation_quality ---------------------------------------------------------------------------------------------


def scoring(**scores: Any) -> Any:
    def change(_: str, answer: dict[str, Any]) -> Any:
        for name, part in answer["conversation_quality"].items():
            if name in scores:
                part[("score" if "score" in part else "passed")] = scores[name]
            elif isinstance(part, dict) and "score" in part:
                part["score"] = 5
        return answer

    return answering(change)


async def _quality(
    asked: Any, *, expectations: Mapping[str, Expectation] | None = None, **options: Any
) -> Outcome:
    due = judged("conversation_quality", conversation_quality=Settings(options=options))
    return (await judge_turns(TRACES, asked, due, expectations=expectations)).outcomes[0]


async def test_eight_criteria_make_one_score() -> None:
    outcome = await _quality(scoring(tool_routing=0))

    assert (outcome.score, outcome.success) == (0.85, True)
    assert outcome.metadata["overall_score"] == 85.0
    assert outcome.metadata["tool_routing"]["label"] == "critical_fail"
    parts = map(as_dict, outcome.metadata.values())
    assert sum("weight" in part for part in parts) == 8


async def test_chosen_criteria_alone_are_asked_for() -> None:
    chosen: list[Any] = [
        {"metric": "tool_routing", "weight": 3},
        {"metric": "task_completion", "weight": 1},
    ]
    asked = scoring(task_completion=False)

    outcome = await _quality(asked, metrics=chosen, pass_threshold=80)

    fields = asked.asked[0][0].schema["properties"]["conversation_quality"]["properties"]
    assert list(fields) == ["tool_routing", "task_completion"]
    assert (outcome.score, outcome.success, outcome.threshold) == (0.75, False, 0.8)
    assert outcome.metadata["task_completion"]["label"] == "fail"


async def test_expected_outcomes_are_reported_and_never_scored() -> None:
    expected = {"1": Expectation(outcomes=("refund issued", "polite"), emphasis="Look at refunds.")}
    asked = scoring()

    outcome = await _quality(asked, expectations=expected)

    assert outcome.score == 1.0
    found = outcome.metadata["expected_outcomes"]
    assert [each["statement"] for each in found] == ["refund issued", "polite"]
    assert asked.asked[0][0].user.startswith("What the operator")
    assert (await _quality(scoring())).metadata["expected_outcomes"] is None


@for_each("options", [{"metrics": [{"metric": "Tool_Routing"}]}, {"pass_threshold": 101}])
def test_options_that_cannot_be_used_are_an_error_at_start(options: Any) -> None:
    with pytest.raises(SettingsError, match="conversation_quality"):
        judged("conversation_quality", conversation_quality=Settings(options=options))


def test_it_is_off_until_it_is_named() -> None:
    plan = make_plan(OURS, {}, embedder=None, judge=True, expectations=True)

    names = {each.spec.name for each in plan.judged}
    assert "agentic" in names
    assert not {"conversation_quality", "faithfulness", "helpfulness", "relevance"} & names


# --- small rules of Connexity's verdict, as the reference applies them ------------------------------------------------


ONE = resolve_weights([("tool_routing", 1.0)])


def _answer(**fields: Any) -> Any:
    return {"tool_routing": {"score": 4, "justification": "j", **fields}}


def test_turns_are_whole_numbers_or_their_text_and_others_break_the_verdict() -> None:
    (score,) = connexity.verdict(_answer(turns=[1, 2.0, "3", "4.0", " 5 "]), ONE).metric_scores

    assert score.turns == (1, 2, 3, 4, 5)
    for turns in ([2.7], ["x"], [True], [None], "12", {"a": 1}, 5):
        with pytest.raises(VerdictError, match="turns"):
            connexity.verdict(_answer(turns=turns), ONE)
    for threshold in (-1, 100.01, float("nan")):
        with pytest.raises(VerdictError, match="pass_threshold"):
            connexity.verdict(_answer(), ONE, pass_threshold=threshold)


def test_a_tie_of_the_overall_score_is_rounded_as_the_reference_rounds_it() -> None:
    chosen = [
        ("parameter_extraction", None),
        ("task_completion", 0.3),
        ("information_gathering", 0.19),
    ]
    low = {"score": 1, "justification": "j"}
    answer: Any = {
        "parameter_extraction": low,
        "task_completion": {"passed": False, "justification": "j"},
        "information_gathering": low,
    }

    assert connexity.verdict(answer, resolve_weights(chosen)).overall_score == 10.63


def test_outcomes_are_texts_and_truths() -> None:
    found = outcomes({"expected_outcomes": [{}, {"statement": 5, "passed": 1}, "x"]}, ["A"])

    assert found == [
        {"statement": "", "passed": False, "justification": ""},
        {"statement": "5", "passed": True, "justification": ""},
    ]
    (half,) = outcomes({"expected_outcomes": [{"passed": "false"}]}, ["A"]) or []
    assert half["passed"] is False


def test_no_step_is_in_its_place_also_when_the_call_was_not_made() -> None:
    call = Use(name="a", parameters={})

    match = match_tools([call], [call, call], answer_uses_tools=True)

    assert (match.sequence_correct, match.parameter_accuracy) == (1.0, 0.5)

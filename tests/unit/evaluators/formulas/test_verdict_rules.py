"""Small rules of Connexity's verdict and Fair Forge's tool match, as their references apply them."""

from typing import Any

import pytest

from evaluators.formulas.connexity import VerdictError, outcomes, resolve_weights, verdict
from evaluators.matching.tool_match import Use, match_tools
from tests.support.table import for_each

ONE = resolve_weights([("tool_routing", 1.0)])


def _answer(**fields: Any) -> Any:
    return {"tool_routing": {"score": 4, "justification": "j", **fields}}


@for_each("empty", [None, "", 0, False, [], {}])
def test_an_empty_failure_code_or_list_of_turns_is_none(empty: Any) -> None:
    (score,) = verdict(_answer(failure_code=empty, turns=empty), ONE).metric_scores

    assert (score.failure_code, score.turns) == (None, ())


def test_turns_are_whole_numbers_or_their_text_and_others_break_the_verdict() -> None:
    (score,) = verdict(_answer(turns=[1, 2.0, "3", "4.0", " 5 "]), ONE).metric_scores

    assert score.turns == (1, 2, 3, 4, 5)
    for turns in ([2.7], ["x"], [True], [None], "12", {"a": 1}, 5):
        with pytest.raises(VerdictError, match="turns"):
            verdict(_answer(turns=turns), ONE)
    for threshold in (-1, 100.01, float("nan")):
        with pytest.raises(VerdictError, match="pass_threshold"):
            verdict(_answer(), ONE, pass_threshold=threshold)


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

    assert verdict(answer, resolve_weights(chosen)).overall_score == 10.63


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

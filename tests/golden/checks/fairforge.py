"""Fair Forge's Agentic metric."""

import math
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pytest

from evaluators.formulas import pass_k
from evaluators.formulas.distribution import clamp
from evaluators.formulas.pass_k import Interval
from evaluators.matching.json_values import object_of
from evaluators.matching.tool_match import DEFAULT_WEIGHTS, ToolMatch, Use, match_tools
from tests.golden.checks.compare import close

BETTER = {
    # The i-th expected call is compared with the i-th made one, true is not 1, weights sum to 1.
    "repeated_tool_params_compared_with_first_call": {"parameter_accuracy"},
    "bool_equals_int": {"parameter_accuracy"},
    "float_sum_fails_perfect_call": set[str](),
}


def frequentist(given: Any, expected: Any, _quirk: str | None) -> None:
    n, c, k = given["n"], given["c"], given["k"]

    passing = {"pass_at_k": pass_k.pass_at_k(n, c, k), "pass_pow_k": pass_k.pass_pow_k(n, c, k)}

    close(passing | {"rate": pass_k.rate(n, c)}, expected, tolerance=1e-12)


def bayesian(given: Any, expected: Any, _quirk: str | None) -> None:
    mine = pass_k.posterior(
        given["n"],
        given["c"],
        given["k"],
        prior_a=given["beta_prior_a"],
        prior_b=given["beta_prior_b"],
        level=given["ci_level"],
    )

    exact = expected["analytical"]
    if exact is None:
        assert all(
            set(asdict(part).values()) == {0.0} for part in (mine.pass_at_k, mine.pass_pow_k)
        )
        return
    for name in ("rate", "pass_at_k", "pass_pow_k"):
        part: Interval = getattr(mine, name)
        close(part.mean, exact[name]["mean"], tolerance=1e-9)
        close(part.low, exact[name]["ci_low"], tolerance=1e-7)
        close(part.high, exact[name]["ci_high"], tolerance=1e-7)


def tool_correctness(given: Any, expected: Any, quirk: str | None) -> None:
    if "error" in expected or quirk == "weights_not_normalised":
        # The reference crashes or scores outside [0, 1]; weights that cannot be normalised are rejected.
        with suppress(ValueError):
            mine = _match(given["agentic"], given["ground_truth_agentic"], given)
            assert 0 <= mine.overall_correctness <= 1
        return
    mine = _match(given["agentic"], given["ground_truth_agentic"], given)

    if quirk == "nothing_expected_nothing_used_scores_0.25":
        assert mine.overall_correctness == 1.0
        return
    if quirk == "float_sum_fails_perfect_call":
        assert mine.is_correct
    differing = BETTER.get(quirk or "", set[str]())
    if quirk in BETTER:
        differing = differing | {"overall_correctness", "is_correct"}
    kept = {key: value for key, value in asdict(mine).items() if key not in differing}
    close(kept, {key: expected[key] for key in kept}, tolerance=1e-9)


def conversation(given: Any, expected: Any, quirk: str | None) -> None:
    scores = [_number(answer) for answer in given["judge_answers"]]
    tools = [_tools(each, given) for each in given["interactions"]]
    threshold = given["threshold"]
    how = pass_k.Passing(k=given["k"], threshold=0.7 if threshold is None else threshold)

    if quirk in {"judge_failure_scored_as_0", "empty_conversation_fully_correct"}:
        with pytest.raises(ValueError, match="each with a score"):
            pass_k.conversation(scores, tools, how)
        return
    mine = pass_k.conversation(scores, tools, how)

    if quirk == "score_above_1_not_clamped":
        expected["correctness_scores"] = [clamp(each) for each in expected["correctness_scores"]]
    for outside in ("session_id", "assistant_id", "llm_calls"):
        expected.pop(outside)
    close(mine, expected, tolerance=1e-9)


def _number(answer: Any) -> float:
    """The judge's score; NaN where it gave none."""
    fields = object_of(answer)
    value: Any = answer if fields is None else fields.get("correctness_score")
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _tools(interaction: Any, given: Any) -> ToolMatch | None:
    made, wanted = interaction["agentic"], interaction["ground_truth_agentic"]
    if not wanted or not made or not made.get("tools_used"):
        return None
    return _match(made, wanted, given)


def _match(made: Any, wanted: Any, given: Any) -> ToolMatch:
    threshold, weights = given["tool_threshold"], given.get("tool_weights")
    return match_tools(
        _uses(made.get("tools_used")),
        _uses(wanted.get("expected_tools")),
        order_matters=wanted.get("tool_sequence_matters", True),
        answer_uses_tools=made.get("final_answer_uses_tools", False),
        weights=DEFAULT_WEIGHTS if weights is None else weights,
        threshold=1.0 if threshold is None else threshold,
    )


def _uses(calls: list[Any] | None) -> list[Use]:
    return [
        Use(
            name=call.get("tool_name"), parameters=call.get("parameters", {}), step=call.get("step")
        )
        for call in calls or ()
    ]

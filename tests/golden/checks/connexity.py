"""Connexity's judge."""

from dataclasses import asdict
from typing import Any

import msgspec
import pytest

from evaluators.formulas import connexity
from tests.golden.checks.compare import close


def registry(_given: Any, expected: Any, _quirk: str | None) -> None:
    listing = connexity.available_metrics()

    mine = [
        {
            "name": each.name,
            "tier": each.tier,
            "default_weight": each.default_weight,
            "score_type": each.score_type,
            "include_in_defaults": each.include_in_defaults,
            "has_rubric": bool(each.rubric),
        }
        for each in connexity.CRITERIA
    ]
    close({"metrics": mine, "count": listing["count"]}, expected, tolerance=0)


def weights(given: Any, expected: Any, quirk: str | None) -> None:
    config: dict[str, Any] = given["config"] or {}
    chosen = config.get("metrics")

    if "error" in expected or quirk == "duplicate_selection_kept":
        with pytest.raises(connexity.VerdictError):
            connexity.resolve_weights(_selection(chosen))
        return
    resolved = connexity.resolve_weights(_selection(chosen))

    mine = [{"metric": each.name, "weight": weight} for each, weight in resolved]
    close(mine, expected["resolved"], tolerance=1e-12)


def verdict(given: Any, expected: Any, quirk: str | None) -> None:
    if expected.get("judge_failed", True) or quirk == "duplicate_selection_kept":
        # No score, where the reference reports 0, crashes or counts twice.
        with pytest.raises((connexity.VerdictError, msgspec.DecodeError)):
            _verdict(given)
        return
    try:
        mine = _verdict(given)
    except connexity.VerdictError:
        # A truth value is not a number.
        assert quirk == "lenient_coercion"
        assert "true" in given["judge_output"] or "false" in given["judge_output"]
        return

    assert mine.passed == expected["passed"]
    close(mine.overall_score, expected["overall_score"], tolerance=0.005)
    scores = [asdict(each) for each in mine.metric_scores]
    for score in scores:
        score.pop("justification")
    close(scores, expected["metric_scores"], tolerance=1e-12)
    answer = msgspec.json.decode((given["judge_output"] or "").strip())
    found = connexity.outcomes(answer, given["expected_outcomes"])
    seen = found and [{"statement": each["statement"], "passed": each["passed"]} for each in found]
    assert seen == expected["expected_outcomes"]


def _verdict(given: Any) -> connexity.ConversationVerdict:
    resolved = connexity.resolve_weights(_selection(given["metrics"]))
    if given["judge_raises"]:
        raise connexity.VerdictError("the call failed")
    threshold = given["pass_threshold"]
    return connexity.verdict(
        msgspec.json.decode((given["judge_output"] or "").strip()),
        resolved,
        pass_threshold=connexity.PASS_THRESHOLD if threshold is None else threshold,
    )


def _selection(chosen: Any) -> list[tuple[str, float | None]] | None:
    return chosen and [(each["metric"], each.get("weight")) for each in chosen]

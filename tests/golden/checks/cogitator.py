"""Cogitator's evals."""

import asyncio
from typing import Any

from evaluators.declare import evaluator
from evaluators.formulas import distribution
from evaluators.formulas.distribution import clamp, rounded
from evaluators.judging.prompt import JudgeError
from evaluators.matching import text
from evaluators.matching.text import text_of
from evaluators.model import Score, Tokens, Trace, Turn
from evaluators.plan import Plan, make_plan
from evaluators.run import score_trace
from tests.golden.checks.compare import close
from tests.support.evaluating import OURS, a_trace, plan_of, session_outcomes
from tests.support.judging import always, judge, judged


def aggregate(given: Any, expected: Any, _quirk: str | None) -> None:
    close(distribution.aggregate(given["values"]), expected, tolerance=1e-12, relative=1e-12)


def percentile(given: Any, expected: Any, _quirk: str | None) -> None:
    value = distribution.percentile(given["values"], given["p"])

    close(value, expected["value"], tolerance=1e-12, relative=1e-12)


def statistical(given: Any, expected: Any, _quirk: str | None) -> None:
    results = given["results"]
    usage = [each["usage"] for each in results if each["usage"] is not None]
    zeros = {
        "latency": distribution.latency([]),
        "cost": distribution.cost([]),
        "token_usage": distribution.token_usage([]),
    }

    turns = (_turn(number, each) for number, each in enumerate(results))
    outcomes = session_outcomes(make_plan(OURS, {}, embedder=None, only=list(zeros)), *turns)

    for name, theirs in (("latency", "latency"), ("cost", "cost"), ("token_usage", "tokenUsage")):
        # Where nothing was measured the document shows zeros; we say not_applicable instead.
        measured = bool(results) if name == "latency" else bool(usage)
        assert outcomes[name].state == ("measured" if measured else "not_applicable")
        mine = outcomes[name].metadata if measured else zeros[name]
        close(mine, expected[theirs], tolerance=1e-9, relative=1e-9)


def _turn(number: int, result: Any) -> Turn:
    usage = result["usage"]
    return Turn(
        trace_id=f"{number:032x}",
        start_time_unix_nano=number,
        duration=result["duration"] / 1000,
        digest="",
        cost_usd=None if usage is None else usage["cost"],
        tokens=Tokens()
        if usage is None
        else Tokens(input=usage["inputTokens"], output=usage["outputTokens"]),
    )


def custom_metric(given: Any, expected: Any, _quirk: str | None) -> None:
    @evaluator(version="1", method="custom")
    def returned(trace: Trace) -> Score:
        """A user's function."""
        if given["raises"]:
            raise RuntimeError("a user's fault")
        return Score(value=given["returned"])

    (outcome,) = score_trace(Plan(trace=plan_of(returned).plugins), a_trace())

    if expected["has_error"]:
        # The reference gives 0; an exception is not a score here.
        assert (outcome.state, outcome.score) == ("failed", None)
    else:
        close(outcome.score, expected["score"], tolerance=0.00005)
        close(clamp(given["returned"]), expected["score"], tolerance=0)


def string_match(given: Any, expected: Any, _quirk: str | None) -> None:
    compare = {"exactMatch": text.exact_match, "contains": text.contains}[given["metric"]]

    fault = compare(
        given["output"], given["expected"], case_sensitive=given["case_sensitive"] or False
    )

    assert (fault is None) == (expected["score"] == 1)
    assert (fault is not None) == expected["has_details"]


def regex(given: Any, expected: Any, _quirk: str | None) -> None:
    fault = text.regex(given["output"], given["pattern"], given["flags"])

    assert (fault is None) == (expected["score"] == 1)
    assert (fault is not None) == expected["has_details"]


def json_schema(given: Any, expected: Any, quirk: str | None) -> None:
    fault = text.json_schema(given["output"], given["json_schema"])

    if quirk is not None:
        # Zod's word, which its own JSON Schema does not say.
        assert fault is None or fault[0] in {"parse", "validation"}
        return
    assert (None if fault is None else fault[0]) == expected["failure"]
    assert (fault is None) == (expected["score"] == 1)


def judge_parsing(given: Any, expected: Any, quirk: str | None) -> None:
    error = JudgeError(type="provider_error", message="the judge raised")
    script = always(error if given["judge_raises"] else given["judge_output"])

    verdict = asyncio.run(judge(a_trace(), script, judged("faithfulness")))

    (outcome,) = verdict.outcomes
    if expected["kind"] != "parsed":
        assert (outcome.state, outcome.score) == ("failed", None)  # where the reference records 0
    elif quirk == "first_number_in_prose_is_taken":
        assert outcome.state in {"failed", "scored"}  # scored only as its text says
    else:
        assert outcome.state == "scored"
        assert outcome.score == rounded(expected["score"])
        if expected["reasoning"] is not None:
            assert outcome.explanation == text_of(expected["reasoning"])

"""Cogitator's evals."""

from __future__ import annotations

from typing import Any

from evaluators.formulas import distribution
from evaluators.model import Session, Tokens, Turn
from evaluators.run import SessionScorer, make_plan
from tests.golden.checks.compare import close
from tests.support.evaluating import OURS


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

    turns = tuple(_turn(number, each) for number, each in enumerate(results))
    scorer = SessionScorer(make_plan(OURS, {}, embedder=None, only=list(zeros)))
    session = Session(service="s", session_id="s", agent="a", turns=turns, closed="idle")
    outcomes = {each.evaluator: each for each in scorer.outcomes(session, closed=True)}

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
        output=None,
        cost_usd=None if usage is None else usage["cost"],
        tokens=Tokens()
        if usage is None
        else Tokens(input=usage["inputTokens"], output=usage["outputTokens"]),
    )

"""Helpfulness (Cogitator's `helpfulness`)."""

from evaluators.declare import evaluator
from evaluators.judging.rubric_judge import Judgement
from evaluators.model import Score, Trace


class Helpfulness(Judgement, frozen=True, kw_only=True):
    """Whether the response would be useful to the user."""


@evaluator(version="1", on=False, source="Cogitator, evaluation", reads={"text"})
def helpfulness(trace: Trace, *, judgement: Helpfulness) -> Score:
    """Whether the response would be useful to the user."""
    return judgement.to_score()

"""Relevance (Cogitator's `relevance`)."""

from evaluators.declare import evaluator
from evaluators.judging.rubric_judge import Judgement
from evaluators.model import Score, Trace


class Relevance(Judgement, frozen=True, kw_only=True):
    """Whether the response addresses the question asked."""


@evaluator(version="1", on=False, source="Cogitator, evaluation", reads={"text"})
def relevance(trace: Trace, *, judgement: Relevance) -> Score:
    """Whether the response addresses the question asked."""
    return judgement.to_score()

"""Response coherence (Cogitator's `coherence`)."""

from evaluators.declare import evaluator
from evaluators.judging.rubric_judge import Judgement
from evaluators.model import Score, Trace


class ResponseCoherence(Judgement, frozen=True, kw_only=True):
    """Whether the response is logical and well-structured."""


@evaluator(version="1", on=False, source="Cogitator, evaluation", reads={"text"})
def response_coherence(trace: Trace, *, judgement: ResponseCoherence) -> Score:
    """Whether the response is logical and well-structured."""
    return judgement.to_score()

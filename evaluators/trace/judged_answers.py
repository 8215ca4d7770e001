"""What a judge says of an answer alone: Cogitator's `faithfulness`, `helpfulness`, `relevance` and `coherence`."""

from evaluators.declare import evaluator
from evaluators.judging.rubric_judge import Judgement
from evaluators.model import Score, Trace


class Faithfulness(Judgement, frozen=True, kw_only=True):
    """Whether the response is faithful to facts in the input."""


@evaluator(version="1", on=False, source="Cogitator, evaluation", reads={"text", "tool_calls"})
def faithfulness(trace: Trace, *, judgement: Faithfulness) -> Score:
    """Whether the response is faithful to facts in the input."""
    return judgement.to_score()


class Helpfulness(Judgement, frozen=True, kw_only=True):
    """Whether the response would be useful to the user."""


@evaluator(version="1", on=False, source="Cogitator, evaluation", reads={"text"})
def helpfulness(trace: Trace, *, judgement: Helpfulness) -> Score:
    """Whether the response would be useful to the user."""
    return judgement.to_score()


class Relevance(Judgement, frozen=True, kw_only=True):
    """Whether the response addresses the question asked."""


@evaluator(version="1", on=False, source="Cogitator, evaluation", reads={"text"})
def relevance(trace: Trace, *, judgement: Relevance) -> Score:
    """Whether the response addresses the question asked."""
    return judgement.to_score()


class ResponseCoherence(Judgement, frozen=True, kw_only=True):
    """Whether the response is logical and well-structured."""


@evaluator(version="1", on=False, source="Cogitator, evaluation", reads={"text"})
def response_coherence(trace: Trace, *, judgement: ResponseCoherence) -> Score:
    """Whether the response is logical and well-structured."""
    return judgement.to_score()

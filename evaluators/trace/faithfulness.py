"""Faithfulness (Cogitator's `faithfulness`)."""

from evaluators.declare import evaluator
from evaluators.judging.rubric_judge import Judgement
from evaluators.model import Score, Trace


class Faithfulness(Judgement, frozen=True, kw_only=True):
    """Whether the response is faithful to facts in the input."""


@evaluator(version="1", on=False, source="Cogitator, evaluation", reads={"text", "tool_calls"})
def faithfulness(trace: Trace, *, judgement: Faithfulness) -> Score:
    """Whether the response is faithful to facts in the input."""
    return judgement.to_score()

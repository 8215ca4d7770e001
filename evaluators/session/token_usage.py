"""Tokens of a session's turns (Cogitator)."""

from evaluators.declare import evaluator
from evaluators.formulas import distribution
from evaluators.model import Score, Session


@evaluator(version="1", threshold=None, source="Cogitator, evaluation", reads={"tokens"})
def token_usage(session: Session) -> Score:
    """Input and output tokens, over the turns that carry either."""
    every = [(turn.tokens.input, turn.tokens.output) for turn in session.turns]
    usage = [(used or 0, made or 0) for used, made in every if (used, made) != (None, None)]
    if not usage:
        return Score.not_applicable("no turn carries token counts")
    return Score.measured(distribution.token_usage(usage))

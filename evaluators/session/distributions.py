"""Cogitator's distributions over the turns of a session."""

from evaluators.declare import evaluator
from evaluators.formulas import distribution
from evaluators.model import Score, Session


@evaluator(version="1", threshold=None, source="Cogitator, evaluation", reads={"root"})
def latency(session: Session) -> Score:
    """Distribution of the turns' durations, in milliseconds."""
    if not session.turns:
        return Score.not_applicable("the session has no turns")
    return Score.measured(distribution.latency([turn.duration * 1000 for turn in session.turns]))


@evaluator(version="1", threshold=None, source="Cogitator, evaluation", reads={"tokens"})
def cost(session: Session) -> Score:
    """Distribution of the turns' costs in USD, over the turns that carry one."""
    costs = [turn.cost_usd for turn in session.turns if turn.cost_usd is not None]
    if not costs:
        return Score.not_applicable("no turn carries a cost")
    return Score.measured(distribution.cost(costs))


@evaluator(version="1", threshold=None, source="Cogitator, evaluation", reads={"tokens"})
def token_usage(session: Session) -> Score:
    """Input and output tokens, over the turns that carry either."""
    every = [(turn.tokens.input, turn.tokens.output) for turn in session.turns]
    usage = [(used or 0, made or 0) for used, made in every if (used, made) != (None, None)]
    if not usage:
        return Score.not_applicable("no turn carries token counts")
    return Score.measured(distribution.token_usage(usage))

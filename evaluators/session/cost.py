"""Cost of a session's turns (Cogitator)."""

from evaluators.declare import evaluator
from evaluators.formulas import distribution
from evaluators.model import Score, Session


@evaluator(version="1", threshold=None, source="Cogitator, evaluation", reads={"tokens"})
def cost(session: Session) -> Score:
    """Distribution of the turns' costs in USD, over the turns that carry one."""
    costs = [turn.cost_usd for turn in session.turns if turn.cost_usd is not None]
    if not costs:
        return Score.not_applicable("no turn carries a cost")
    return Score.measured(distribution.cost(costs))

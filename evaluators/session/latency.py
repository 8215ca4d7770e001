"""Latency of a session's turns (Cogitator)."""

from evaluators.declare import evaluator
from evaluators.formulas import distribution
from evaluators.model import Score, Session


@evaluator(version="1", threshold=None, source="Cogitator, evaluation", reads={"root"})
def latency(session: Session) -> Score:
    """Distribution of the turns' durations, in milliseconds."""
    if not session.turns:
        return Score.not_applicable("the session has no turns")
    return Score.measured(distribution.latency([turn.duration * 1000 for turn in session.turns]))

"""Work baseline: a session that took more work than its agent's earlier sessions is in doubt."""

from evaluators.declare import evaluator
from evaluators.formulas.work import LEAST_HISTORY
from evaluators.model import Score, Session
from evaluators.resources import EarlierSessions

WARMING_UP = f"fewer than {LEAST_HISTORY} earlier sessions of this agent have closed"


@evaluator(version="1", threshold=None, source="Spanwise", reads={"session", "text", "tool_calls"})
def work_baseline(session: Session, *, earlier: EarlierSessions) -> Score:
    """1 - the mean rank of the session's work among the agent's newest 1,000 closed sessions; 0.5 is the usual.

    Work is characters of the transcript, of answers and of questions, and the number of tool calls; where the spans
    carry no text, the numbers of model calls and tool calls. An agent is service, agent and first model. It sorts
    sessions, and has no pass or fail: of those with the most work more fail, of those with the least fewer
    (docs/evidence.md). Below 10 earlier sessions it warms up. A session is ranked while it is open, too.
    """
    ranked = earlier.history.rank(earlier.session, earlier.work)
    if ranked is None:
        return Score.not_applicable(WARMING_UP, "warming_up")
    return Score(
        value=ranked.score,
        explanation=ranked.explanation(earlier.work),
        metadata={
            "ranks": {name: round(rank, 4) for name, rank in ranked.ranks.items()},
            "values": {name: getattr(earlier.work, name) for name in ranked.ranks},
            "medians": dict(ranked.medians),
            "sessions": ranked.earlier,
        },
    )

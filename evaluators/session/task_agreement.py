"""Task agreement: a run that changed something else than the other runs of its task is in doubt."""

from evaluators.content import NO_CONTENT
from evaluators.declare import evaluator
from evaluators.formulas.agreement import LEAST_RUNS
from evaluators.model import Score, Session
from evaluators.resources import EarlierRuns

_FEW = f"fewer than {LEAST_RUNS} earlier runs of its task, or none of the runs changed anything"


@evaluator(version="1", threshold=None, source="Spanwise", reads={"session", "tool_calls"})
def task_agreement(session: Session, *, runs: EarlierRuns) -> Score:
    """How far a run of a task made the same writes as the newest 20 other runs of the task.

    The mean of the Jaccard indices of (tool, arguments), over calls without error of tools that change something. By
    its name a tool only reads if it begins with one of these words: get, find, list, search, calculate, think, check,
    look, lookup, read, fetch, query, can_, run_speed, consult, describe, view, show, verify, validate, buscar, obtener,
    listar or ver. So it does if it contains "transfer", or if `tasks.read_only` names it. The task is the session's
    `spanwise.task.id`. It has no pass or fail, and says nothing of requests that are merely similar.
    """
    if runs.history is None:
        return Score.not_applicable("the session names no task")
    if not runs.has_text:
        return Score.not_applicable(NO_CONTENT, "no_content")
    agreement = runs.history.agreement(runs.session, runs.writes)
    if agreement is None:
        return Score.not_applicable(_FEW)
    return Score(
        value=agreement.score,
        explanation=f"{agreement.same} of {agreement.runs} other runs of the task made the same writes",
        metadata={
            "runs": agreement.runs,
            "same_writes": agreement.same,
            "writes": len(runs.writes),
        },
    )

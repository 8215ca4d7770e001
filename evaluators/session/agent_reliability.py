"""Agent reliability (PandaProbe): the tail of a session's risk."""

from collections.abc import Mapping

from evaluators.counts import amount
from evaluators.declare import evaluator
from evaluators.formulas.distribution import clamp, rounded
from evaluators.formulas.session_risk import MAX_WEIGHT, TOP_SHARE, TailRisk
from evaluators.formulas.signals import SIGNALS, Inputs, SignalName, risks
from evaluators.model import JSON, Score, Session
from evaluators.resources import Weight

FLAGGED_ABOVE = 0.5  # the risk of a step above which it is named


@evaluator(version="2", source="PandaProbe, evaluation metrics")
def agent_reliability(
    session: Session,
    *,
    state: TailRisk,
    signal_weights: Mapping[str, Weight] = {},
    signals: tuple[SignalName, ...] | None = None,
    inputs: Inputs = "calibrated",
) -> Score:
    """Worst-case risk of a session: nine tenths its worst 15 % of turns, one tenth its worst turn."""
    if state.is_empty:
        return Score.assume(1.0, "No traces or signals to evaluate.", {"note": "empty_session"})
    if not state.evaluated:
        return Score.assume(1.0, "No evaluable traces.")
    risk, tail, worst = state.raw_risk, state.mean_top_k, state.max_risk
    metadata: dict[str, JSON] = {
        "total_traces_in_session": state.turns,
        "traces_evaluated": state.evaluated,
        "raw_risk": rounded(risk),
        "signal_weights": state.weights,
    }
    if session.closed is not None:
        metadata |= _per_trace(session, state)
    metadata["aggregation"] = {
        "method": "max_compose_top_k",
        "top_k_percentile": TOP_SHARE,
        "ensemble_weight": MAX_WEIGHT,
        "mean_top_k_risk": rounded(tail),
        "max_risk": rounded(worst),
    }
    return Score(
        value=rounded(clamp(1 - risk)),
        explanation=f"worst turn's risk {worst:.2f}, tail {tail:.2f} over {amount(state.evaluated, 'turn')}",
        metadata=metadata,
    )


def _per_trace(session: Session, state: TailRisk) -> dict[str, JSON]:
    per_trace: dict[str, JSON] = {}
    flagged: list[str] = []
    for turn in session.turns:
        risk = risks(turn, state.signals, state.inputs)
        step = state.value(risk)
        if step is None:
            continue
        parts = {SIGNALS[name].name: rounded(value) for name, value in risk.items()}
        per_trace[turn.trace_id] = {**parts, "step_risk": rounded(step)}
        if step > FLAGGED_ABOVE:
            flagged.append(turn.trace_id)
    return {"per_trace_signals": per_trace, "flagged_traces": flagged}

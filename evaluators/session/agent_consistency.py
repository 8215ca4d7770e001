"""Agent consistency (PandaProbe): how unstable a session is overall."""

from collections.abc import Mapping

from evaluators.counts import amount
from evaluators.declare import evaluator
from evaluators.formulas.distribution import clamp, rounded
from evaluators.formulas.session_risk import RootMeanSquare, penalty, weighted_uncertainty
from evaluators.formulas.signals import SIGNALS, Inputs, SignalName, risks
from evaluators.model import JSON, Score, Session
from evaluators.resources import Weight


@evaluator(version="2", source="PandaProbe, evaluation metrics")
def agent_consistency(
    session: Session,
    *,
    state: RootMeanSquare,
    signal_weights: Mapping[str, Weight] = {},
    signals: tuple[SignalName, ...] | None = None,
    inputs: Inputs = "calibrated",
) -> Score:
    """1 - the root mean square of every turn's risk of confidence, amplified by its other signals."""
    if state.is_empty:
        return Score.assume(1.0, "No traces or signals to evaluate.", {"note": "empty_session"})
    if not state.evaluated:
        return Score.assume(1.0, "No evaluable traces.")
    instability = state.rms
    metadata: dict[str, JSON] = {
        "total_traces_in_session": state.turns,
        "traces_evaluated": state.evaluated,
        "raw_instability": rounded(instability),
        "signal_weights": state.weights,
    }
    if session.closed is not None:
        metadata["per_trace_signals"] = _per_trace(session, state)
    metadata["aggregation"] = {"method": "weighted_rms", "rms_value": rounded(instability)}
    return Score(
        value=rounded(clamp(1 - instability)),
        explanation=f"instability {instability:.2f} over {amount(state.evaluated, 'turn')}",
        metadata=metadata,
    )


def _per_trace(session: Session, state: RootMeanSquare) -> dict[str, JSON]:
    per_trace: dict[str, JSON] = {}
    for turn in session.turns:
        risk = risks(turn, state.signals, state.inputs)
        if "confidence" not in risk:
            continue
        per_trace[turn.trace_id] = {
            **{SIGNALS[name].name: rounded(value) for name, value in risk.items()},
            "situational_penalty": rounded(penalty(risk, state.weights)),
            "weighted_uncertainty": rounded(weighted_uncertainty(risk, state.weights)),
        }
    return per_trace

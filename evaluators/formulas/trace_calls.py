"""How many model calls the traces of one agent make: what is usual, so that a trace that makes far more is seen."""

from msgspec.structs import replace

from evaluators.formulas.row_history import RowHistory
from evaluators.matching.text import clip
from evaluators.model import Outcome, Trace

LEAST_TRACES = 10  # other traces below which it is not known what is usual
MOST_TRACES = 200  # newest traces that are remembered
MODEL_NAME = 200  # bytes of a model's name that are kept
USUAL = "usual_model_calls"  # in the metadata of a trace or session that made far more


def first_model(trace: Trace) -> str:
    """The first model that was called, cut to MODEL_NAME bytes; empty: none was named."""
    return clip(trace.models[0], MODEL_NAME) if trace.models else ""


class TraceCallsHistory(RowHistory):
    """The model calls of an agent's newest closed traces: 2.4 kB when full."""

    MOST, LEAST = MOST_TRACES, LEAST_TRACES


def far_more_calls(outcome: Outcome, calls: int, usual: float, said: str) -> Outcome:
    """The outcome of a trace or session that made far more model calls than the usual, which `said` names: 0."""
    why = f"{calls} model calls, {calls / usual:.1f}x {said}"
    return replace(
        outcome,
        state="scored",
        reason=None,
        score=0.0,
        success=False,
        assumed=None,
        explanation=f"{why}; {outcome.explanation}" if outcome.explanation else why,
        metadata={**outcome.metadata, "model_calls": calls, USUAL: usual},
    )

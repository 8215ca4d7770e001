"""How many model calls the traces of one agent make: what is usual, so that a trace that makes far more is seen."""

from evaluators.formulas.row_history import RowHistory
from evaluators.matching.text import clip
from evaluators.model import Trace

LEAST_TRACES = 10  # other traces below which it is not known what is usual
MOST_TRACES = 200  # newest traces that are remembered
MODEL_NAME = 200  # bytes of a model's name that are kept


def first_model(trace: Trace) -> str:
    """The first model that was called, cut to MODEL_NAME bytes; empty: none was named."""
    return clip(trace.models[0], MODEL_NAME) if trace.models else ""


class TraceCallsHistory(RowHistory):
    """The model calls of an agent's newest closed traces: 2.4 kB when full."""

    MOST, LEAST = MOST_TRACES, LEAST_TRACES

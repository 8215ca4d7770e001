"""Contains (Cogitator): does the output contain the expected text?"""

from evaluators.declare import evaluator
from evaluators.expectations import Expectation
from evaluators.matching import text
from evaluators.model import Score, Trace


@evaluator(version="1", source="Cogitator, evaluation", reads={"text"})
def contains(trace: Trace, *, expectation: Expectation, case_sensitive: bool = False) -> Score:
    """1 if the output contains the expected text, else 0; nothing is trimmed."""
    if expectation.output is None:
        return Score.not_applicable("no output is expected of this trace")
    fault = text.contains(trace.output or "", expectation.output, case_sensitive=case_sensitive)
    return Score(value=float(fault is None), explanation=fault)

"""Exact match (Cogitator): is the output the expected one?"""

from evaluators.declare import evaluator
from evaluators.expectations import Expectation
from evaluators.matching import text
from evaluators.model import Score, Trace


@evaluator(version="1", source="Cogitator, evaluation", reads={"text"})
def exact_match(trace: Trace, *, expectation: Expectation, case_sensitive: bool = False) -> Score:
    """1 if the output equals the expected one after trimming both, else 0."""
    if expectation.output is None:
        return Score.not_applicable("no output is expected of this trace")
    fault = text.exact_match(trace.output or "", expectation.output, case_sensitive=case_sensitive)
    return Score(value=float(fault is None), explanation=fault)

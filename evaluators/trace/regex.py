"""Regex (Cogitator): does the output match the expected pattern?"""

from evaluators.declare import evaluator
from evaluators.expectations import Expectation
from evaluators.matching import text
from evaluators.model import Score, Trace


@evaluator(version="1", source="Cogitator, evaluation", reads={"text"})
def regex(trace: Trace, *, expectation: Expectation) -> Score:
    """1 if the expected ECMAScript pattern is found anywhere in the output, case-sensitive, else 0."""
    if expectation.regex is None:
        return Score.not_applicable("no pattern is expected of this trace")
    fault = text.regex(trace.output or "", expectation.regex)
    return Score(value=float(fault is None), explanation=fault)

"""Cogitator's comparisons of the output with what is expected of the trace."""

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


@evaluator(version="1", source="Cogitator, evaluation", reads={"text"})
def exact_match(trace: Trace, *, expectation: Expectation, case_sensitive: bool = False) -> Score:
    """1 if the output equals the expected one after trimming both, else 0."""
    if expectation.output is None:
        return Score.not_applicable("no output is expected of this trace")
    fault = text.exact_match(trace.output or "", expectation.output, case_sensitive=case_sensitive)
    return Score(value=float(fault is None), explanation=fault)


@evaluator(version="1", source="Cogitator, evaluation", reads={"text"})
def regex(trace: Trace, *, expectation: Expectation) -> Score:
    """1 if the expected ECMAScript pattern is found anywhere in the output, case-sensitive, else 0."""
    if expectation.regex is None:
        return Score.not_applicable("no pattern is expected of this trace")
    fault = text.regex(trace.output or "", expectation.regex)
    return Score(value=float(fault is None), explanation=fault)


@evaluator(version="1", source="Cogitator, evaluation", reads={"text"})
def json_schema(trace: Trace, *, expectation: Expectation) -> Score:
    """1 if the output is strict JSON and satisfies the expected JSON Schema, else 0."""
    if expectation.json_schema is None:
        return Score.not_applicable("no schema is expected of this trace")
    fault = text.json_schema(trace.output or "", expectation.json_schema)
    return Score(
        value=float(fault is None), explanation=None if fault is None else ": ".join(fault)
    )

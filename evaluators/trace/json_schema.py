"""JSON schema (Cogitator): is the output JSON of the expected form?"""

from evaluators.declare import evaluator
from evaluators.expectations import Expectation
from evaluators.matching import text
from evaluators.model import Score, Trace


@evaluator(version="1", source="Cogitator, evaluation", reads={"text"})
def json_schema(trace: Trace, *, expectation: Expectation) -> Score:
    """1 if the output is strict JSON and satisfies the expected JSON Schema, else 0."""
    if expectation.json_schema is None:
        return Score.not_applicable("no schema is expected of this trace")
    fault = text.json_schema(trace.output or "", expectation.json_schema)
    return Score(
        value=float(fault is None), explanation=None if fault is None else ": ".join(fault)
    )

"""Step efficiency from facts: the deterministic sibling of PandaProbe's judge."""

from __future__ import annotations

from evaluators.declare import evaluator
from evaluators.formulas.calls import brief, repeats, span_ids
from evaluators.model import Score, Trace


@evaluator(version="1", verdict_in_metadata=True)
def step_efficiency(trace: Trace) -> Score:
    """Share of tool calls that were useful: they ended without error and repeated no earlier call."""
    calls = trace.tool_calls
    if not calls:
        return Score.not_applicable("the trace called no tools")
    again = {id(call) for call in repeats(calls)}
    wasted = [call for call in calls if call.error is not None or id(call) in again]
    return Score(
        value=1 - len(wasted) / len(calls),
        explanation=f"{len(calls) - len(wasted)} of {len(calls)} tool calls were useful,"
        f" {len(again)} repeated an earlier one",
        metadata={"task": brief(trace.input)},
        evidence=span_ids(wasted),
    )

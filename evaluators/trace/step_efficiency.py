"""Step efficiency from facts: the deterministic sibling of PandaProbe's judge."""

from __future__ import annotations

from evaluators.declare import pandaprobe
from evaluators.matching.json_values import brief
from evaluators.matching.tool_calls import repeats, span_ids
from evaluators.model import Score, Trace
from evaluators.resources import Block, Extraction, UnitInterval


class Efficiency(Block, frozen=True, kw_only=True):
    """Was the task done with as few actions as it needs?

    1 = minimal; 0.75 = one redundant step; 0.5 = several; 0.25 = mostly redundant or speculative; 0 = nothing useful.
    """

    score: UnitInterval
    reason: str | None = None


@pandaprobe(version="1", reads={"tool_calls"})
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


@pandaprobe(version="1", name="step_efficiency", reads={"tool_calls"})
def judged_step_efficiency(
    trace: Trace, *, extraction: Extraction, efficiency: Efficiency
) -> Score:
    """How minimal the agent's actions were, as a judge sees it."""
    return Score(
        value=efficiency.score,
        explanation=efficiency.reason,
        metadata={"task": extraction.task},
    )

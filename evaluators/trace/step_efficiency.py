"""Step efficiency from facts: the deterministic sibling of PandaProbe's judge."""

from evaluators.declare import pandaprobe
from evaluators.matching.json_values import brief
from evaluators.matching.repeats import RepeatCounts, repeats
from evaluators.matching.tool_calls import span_ids
from evaluators.model import Score, Trace
from evaluators.resources import Block, Extraction, UnitInterval


class Efficiency(Block, frozen=True, kw_only=True):
    """Was the task done with as few actions as it needs?

    1 = minimal; 0.75 = one redundant step; 0.5 = several; 0.25 = mostly redundant or speculative; 0 = nothing useful.
    """

    score: UnitInterval
    reason: str | None = None


NO_ARGUMENTS = "the spans carry no arguments of tool calls: whether one repeats another is not seen"


@pandaprobe(version="2", reads={"tool_calls"})
def step_efficiency(trace: Trace) -> Score:
    """Share of tool calls that repeated no earlier one of the trace with the same result, failed ones included."""
    calls = trace.tool_calls
    if not calls:
        return Score.not_applicable("the trace called no tools")
    if len(calls) > 1 and all(call.arguments is None for call in calls):
        return Score.not_applicable(NO_ARGUMENTS, "no_content")
    again = repeats(calls)
    return Score(
        value=1 - len(again) / len(calls),
        explanation=RepeatCounts.of(calls).explanation(len(calls), "trace"),
        metadata={"task": brief(trace.input)},
        evidence=span_ids(again),
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

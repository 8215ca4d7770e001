"""Tool correctness from facts: the deterministic sibling of PandaProbe's judge."""

from collections.abc import Mapping, Sequence

from evaluators.counts import amount
from evaluators.declare import pandaprobe
from evaluators.matching.first_failure import first_failure
from evaluators.matching.json_values import bounded, brief, left_out
from evaluators.matching.repeats import RepeatCounts, is_stuck, repeats
from evaluators.matching.tool_calls import (
    check_arguments,
    failures,
    given_up,
    named,
    span_ids,
    unknown,
)
from evaluators.model import JSON, Score, ToolCall, Trace
from evaluators.resources import Block, UnitInterval


class Selection(Block, frozen=True, kw_only=True):
    """Were the right tools chosen for the user's goal?

    Lower the score for over-selection (unnecessary or redundant tools), under-selection (useful ones ignored) and
    mis-selection (wrong ones). 1 = appropriate and sufficient; 0 = entirely wrong.
    """

    score: UnitInterval
    reason: str | None = None


RECOVERED = 0.1
"""What a failed call counts in session formulas once a later call of its tool succeeded, and a second look."""
WORKED_AROUND = 0.4  # what a failed call counts there once a later call of another tool succeeded


@pandaprobe(version="2", reads={"tool_calls", "tool_definitions"})
def tool_correctness(trace: Trace) -> Score:
    """Share of tool calls that call a known tool, fit its schema, end without error and are not an identical repeat.

    The explanation points at the step before the first tool error, which is the decisive one in .42 of labelled runs
    with an error, its agent in .62. Without an error it points at nothing. Calls that a person or a rule refused are
    left out.
    """
    calls = _allowed(trace.tool_calls)
    if not calls:
        every = "every tool call was refused" if trace.tool_calls else "the trace called no tools"
        return Score.not_applicable(every)
    checked = check_arguments(trace)
    faults = {
        "failed": tuple(call for call in calls if call.failed),
        "repeated": repeats(calls),
        "not offered": _allowed(unknown(trace)),
        "against the schema": _allowed(checked.misfits),
    }
    wrong = {id(call) for faulty in faults.values() for call in faulty}
    reasons = [
        f"{RepeatCounts.of(calls).repeats() if kind == 'repeated' else f'{len(faulty)} {kind}'} ({named(faulty)})"
        for kind, faulty in faults.items()
        if faulty
    ]
    metadata, truncated = _metadata(trace)
    first = first_failure(trace)
    spans = span_ids([call for call in calls if id(call) in wrong]) if wrong else ()
    if first is not None:
        reasons.append(first.explanation)
        spans = tuple(dict.fromkeys(filter(None, (first.span_id, *spans))))
    return Score(
        value=1 - len(wrong) / len(calls),
        risk=_risk(calls, faults),
        explanation=f"{len(wrong)} of {amount(len(calls), 'tool call')} at fault"
        + (f": {'; '.join(reasons)}" if reasons else ""),
        metadata=metadata,
        evidence=spans,
        truncated="; ".join(filter(None, [truncated, checked.unchecked])) or None,
    )


def _allowed(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Those that were not refused; the same tuple where none was."""
    allowed = tuple([call for call in calls if call.rejected is None])
    return calls if len(allowed) == len(calls) else allowed


def _risk(calls: Sequence[ToolCall], faults: Mapping[str, Sequence[ToolCall]]) -> float:
    """Mean of what the calls count: a failed one by what came of it, another one by its worst fault."""
    if not any(faults.values()):
        return 0.0
    lost, recovered = failures(calls)
    again = faults["repeated"]
    stuck = is_stuck(calls, again)
    weights = {id(call): RECOVERED for call in again}
    weights |= {id(call): RECOVERED if _ran(call) else 1.0 for call in faults["not offered"]}
    weights |= {id(call): 1.0 for call in faults["against the schema"]}
    weights |= {id(call): RECOVERED for call in recovered}
    weights |= {id(call): 1.0 if given_up(calls, lost) else WORKED_AROUND for call in lost}
    weights |= {id(call): 1.0 for call in again if stuck}
    return sum(weights.values()) / len(calls)


def _ran(call: ToolCall) -> bool:
    """Whether the tool was there after all: what was offered is not always exported whole."""
    return call.span_id is not None or call.result is not None


def _metadata(trace: Trace) -> tuple[dict[str, JSON], str | None]:
    called = bounded(
        [{"name": call.name, "parameters": brief(call.arguments)} for call in trace.tool_calls]
    )
    available = bounded(
        [
            {"name": tool.name, "description": brief(tool.description)}
            for tool in trace.tools_offered
        ]
    )
    missing = [
        left_out("tools_called", called, trace.tool_calls),
        left_out("available_tools", available, trace.tools_offered),
    ]
    metadata = {
        "user_input": brief(trace.input),
        "tools_called": called,
        "available_tools": available,
    }
    return metadata, "; ".join(filter(None, missing)) or None


@pandaprobe(version="1", name="tool_correctness", reads={"tool_calls", "tool_definitions"})
def judged_tool_correctness(trace: Trace, *, selection: Selection) -> Score:
    """Whether the agent chose the right tools, as a judge sees it."""
    metadata, truncated = _metadata(trace)
    first = first_failure(trace)
    reasons = [selection.reason, None if first is None else first.explanation]
    return Score(
        value=selection.score,
        explanation="; ".join(filter(None, reasons)) or None,
        metadata=metadata,
        evidence=(first.span_id,) if first is not None and first.span_id is not None else (),
        truncated=truncated,
    )

"""Runaway: the two rules that are certain enough to say of one trace, also of one that is still open, that it loops.

An agent that loops makes the trace that does not end: open traces are looked at again and again, the closed trace gets
the final outcome.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from evaluators.counts import amount
from evaluators.declare import evaluator
from evaluators.formulas.trace_calls import TraceCallsHistory, far_more_calls
from evaluators.matching.repeats import RepeatCounts, are_comparable, most_repeated, repeats
from evaluators.model import JSON, Outcome, Score, Trace

TIMES = 4  # a trace that makes more than this many times the usual model calls runs away
LEAST_MODEL_CALLS = 20  # model calls below which no trace does, whatever is usual
SHOWN = 10  # repeats whose spans are the evidence: the newest


def model_calls(trace: Trace) -> int:
    """Steps of agents without a model call beneath them included."""
    return len(trace.model_calls) + len(trace.steps)


def repeats_missing(trace: Trace, options: Mapping[str, JSON]) -> int:
    """Repeats that the call that was repeated most lacks until the trace runs away, at least 1."""
    limit = options.get("limit")
    most = len(most_repeated(repeats(trace.tool_calls)))
    return max(1, (limit if isinstance(limit, int) else 1) - most)


def is_found(outcome: Outcome) -> bool:
    return outcome.state == "scored" and outcome.score == 0


def may_be_found(outcome: Outcome, calls: int) -> bool:
    return is_found(outcome) or (
        calls >= LEAST_MODEL_CALLS and outcome.state in {"scored", "not_applicable"}
    )


def with_usual_calls(
    outcome: Outcome, calls: int, history: TraceCallsHistory, trace: int
) -> Outcome:
    """The outcome of `runaway`, 0 if the trace made far more model calls than usual.

    `history`: the model calls of traces of its service, agent and first model, in which it has the number `trace`.
    """
    if is_found(outcome) or not may_be_found(outcome, calls):
        return outcome
    usual = history.median(trace)
    if not usual or calls <= TIMES * usual:
        return outcome
    return far_more_calls(outcome, calls, usual, f"the usual {usual:g} of a trace")


@evaluator(version="1", source="Spanwise", reads={"tool_calls"})
def runaway(trace: Trace, *, limit: Annotated[int, msgspec.Meta(ge=1)] = 10) -> Score:
    """0 once the trace repeated one tool call `limit` times with the same result, else 1.

    Failed calls count too; a changing result is progress. It is 0 as well for a trace that makes at least 20 model
    calls, and more than four times those of the traces before it. That is the median of the newest 200 of its service,
    agent and first model, once there are 10 of them. Open traces are looked at too, when they are
    `windows.trace.glance` old and then at every doubling of their age: what is found is published at once, and not
    final before the trace has closed.
    """
    calls = trace.tool_calls
    if not calls:
        return Score.not_applicable("the trace called no tools")
    if len(calls) > 1 and not are_comparable(calls):
        return Score.not_applicable(
            "no two tool calls of the trace can be compared: their arguments were not exported, or they only wait",
            "no_content",
        )
    again = repeats(calls)
    most = most_repeated(again)
    repeated = RepeatCounts.of(calls).repeats(f"of {amount(len(calls), 'tool call')} of the trace ")
    one = f"; `{most[0].name}` was repeated {len(most)} times" if len(most) > 1 else ""
    return Score(
        value=float(len(most) < limit),
        explanation=repeated + one,
        metadata={
            "repeated_calls": len(again),
            "most_of_one_call": len(most),
            "tool_calls": len(calls),
            "model_calls": model_calls(trace),
        },
        evidence=tuple(call.span_id for call in most[-SHOWN:] if call.span_id)
        if len(most) >= limit
        else (),
    )

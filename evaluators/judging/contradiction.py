"""Facts against a judge's verdict: calls that contradict a near-perfect score."""

from __future__ import annotations

from evaluators.matching.tool_calls import failures, misfits, repeats
from evaluators.model import ToolCall, Trace

NEAR_PERFECT = 0.9


def against(evaluator: str, trace: Trace) -> tuple[ToolCall, ...]:
    """The tool calls that contradict a perfect score, in order.

    tool_correctness: errors not recovered, arguments against the tool's schema. argument_correctness: the latter.
    confidence: errors not recovered, identical repeats. step_efficiency: the latter. Other evaluators: no calls.
    """
    lost, _ = failures(trace.tool_calls)
    found = {
        "tool_correctness": lambda: (*lost, *misfits(trace)),
        "argument_correctness": lambda: misfits(trace),
        "confidence": lambda: (*lost, *repeats(trace.tool_calls)),
        "step_efficiency": lambda: repeats(trace.tool_calls),
    }.get(evaluator, tuple[ToolCall, ...])()
    wrong = {id(call) for call in found}
    return tuple(call for call in trace.tool_calls if id(call) in wrong)


def contradicts(evaluator: str, value: float, trace: Trace) -> bool:
    """Whether a verdict of at least 0.9 meets a fact against it.

    task_completion is contradicted by a last model call that failed or a trace that ended in error.
    """
    if value < NEAR_PERFECT:
        return False
    if evaluator == "task_completion":
        failed = bool(trace.model_calls) and trace.model_calls[-1].error is not None
        return failed or trace.status == "error"
    return bool(against(evaluator, trace))

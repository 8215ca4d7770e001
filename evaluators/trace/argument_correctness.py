"""Argument correctness from facts: the deterministic sibling of PandaProbe's judge."""

from __future__ import annotations

from evaluators.declare import evaluator
from evaluators.formulas.calls import bounded, brief, left_out, span_ids
from evaluators.formulas.schemas import Unjudgeable, argument_error
from evaluators.model import JSON, Score, ToolCall, Trace


@evaluator(version="1", verdict_in_metadata=True)
def argument_correctness(trace: Trace) -> Score:
    """Share of tool calls whose arguments satisfy the tool's JSON schema, of those that have both."""
    if not trace.tool_calls:
        nothing: dict[str, JSON] = {"user_input": brief(trace.input), "verdicts": []}
        return Score.assume(1.0, "the trace called no tools", nothing)
    judged = _judged(trace)
    if not judged:
        return Score.not_applicable("no tool call has both arguments and a usable schema")
    wrong = tuple(call for call, error in judged if error is not None)
    verdicts = [_verdict(error) for _, error in judged]
    kept = bounded(verdicts)
    first = next((f": `{call.name}`: {error}" for call, error in judged if error), "")
    return Score(
        value=1 - len(wrong) / len(judged),
        explanation=f"{len(wrong)} of {len(judged)} calls do not fit their schema{first}",
        metadata={"user_input": brief(trace.input), "verdicts": kept},
        evidence=span_ids(wrong),
        truncated=left_out("verdicts", kept, verdicts),
    )


def _judged(trace: Trace) -> list[tuple[ToolCall, str | None]]:
    """Every call that can be judged, in order, with what is wrong with it."""
    schemas = {tool.name: tool.parameters for tool in trace.tools_offered}
    judged: list[tuple[ToolCall, str | None]] = []
    for call in trace.tool_calls:
        schema = schemas.get(call.name)
        if schema is None or call.arguments is None:
            continue
        try:
            judged.append((call, argument_error(schema, call.arguments)))
        except Unjudgeable:
            continue
    return judged


def _verdict(error: str | None) -> JSON:
    return {"verdict": "yes" if error is None else "no", "reason": error}

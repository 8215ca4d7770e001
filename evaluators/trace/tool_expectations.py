"""Tool expectations (Fair Forge tool correctness): were the expected tools called as expected?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import cast

from evaluators.declare import evaluator
from evaluators.expectations import Expectation
from evaluators.formulas.text import text_of
from evaluators.formulas.tool_match import DEFAULT_WEIGHTS, ToolMatch, Use, match_tools
from evaluators.model import JSON, Score, Trace
from evaluators.resources import UnitInterval, Weight

_TELLING = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]{5,}")


@evaluator(version="1", threshold=1.0)
def tool_expectations(
    trace: Trace,
    *,
    expectation: Expectation,
    tool_weights: Mapping[str, Weight] = DEFAULT_WEIGHTS,
    tool_threshold: UnitInterval = 1.0,
) -> Score:
    """Weighted sum of tool selection, parameters, sequence and use of results; success at `tool_threshold`."""
    if expectation.tools is None:
        return Score.not_applicable("no tools are expected of this trace")
    match = match_trace(trace, expectation, tool_weights, tool_threshold)
    reasoning = (
        f"selection {match.tool_selection_correct:.2f}, parameters {match.parameter_accuracy:.2f}, "
        f"sequence {match.sequence_correct:.2f}, utilization {match.result_utilization:.2f}"
    )
    return Score(
        value=min(1.0, match.overall_correctness),
        success=match.is_correct,
        explanation=reasoning,
        metadata={**asdict(match), "reasoning": reasoning},
    )


def match_trace(
    trace: Trace, expectation: Expectation, weights: Mapping[str, float], threshold: float
) -> ToolMatch:
    """The trace's tool calls against the expected ones, steps numbered as they were made and written."""
    expected = expectation.tools or ()
    uses_tools = expectation.answer_uses_tools
    return match_tools(
        [
            Use(name=call.name, parameters=_object(call.arguments), step=step)
            for step, call in enumerate(trace.tool_calls, 1)
        ],
        [
            Use(name=tool.name, parameters=tool.arguments, step=step)
            for step, tool in enumerate(expected, 1)
        ],
        order_matters=expectation.tool_order_matters,
        answer_uses_tools=answer_uses_tools(trace) if uses_tools is None else uses_tools,
        weights=weights,
        threshold=threshold,
    )


def _object(arguments: JSON) -> Mapping[str, JSON]:
    return cast("Mapping[str, JSON]", arguments) if isinstance(arguments, dict) else {}


def answer_uses_tools(trace: Trace) -> bool:
    """Whether the answer repeats a number or a word of 5+ letters of a tool result that the question lacks."""
    question = _telling(trace.input or "")
    answer = _telling(trace.output or "") - question
    return any(answer & _telling(text_of(call.result)) for call in trace.tool_calls)


def _telling(text: str) -> set[str]:
    return set(_TELLING.findall(text.lower()))

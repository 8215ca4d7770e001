"""Tool expectations (Fair Forge tool correctness): were the expected tools called as expected?"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from evaluators.declare import evaluator
from evaluators.expectations import Expectation
from evaluators.matching.json_values import object_of
from evaluators.matching.text import text_of
from evaluators.matching.tool_match import DEFAULT_WEIGHTS, ToolMatch, Use, match_tools
from evaluators.model import Score, Trace
from evaluators.resources import UnitInterval, Weight

_TELLING = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]{5,}")


@evaluator(version="1", threshold=1.0, source="Fair Forge, agentic metrics", reads={"tool_calls"})
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
    return Score(
        value=min(1.0, match.overall_correctness),
        success=match.is_correct,
        explanation=match.reasoning,
        metadata={**asdict(match), "reasoning": match.reasoning},
    )


def match_trace(
    trace: Trace, expectation: Expectation, weights: Mapping[str, float], threshold: float
) -> ToolMatch:
    """The trace's tool calls against the expected ones.

    Steps are counted over the tools that occur on both sides, so that one call too many or too few does not put every
    later one out of place.
    """
    expected = expectation.tools or ()
    shared = {call.name for call in trace.tool_calls} & {tool.name for tool in expected}
    steps_made = _steps([call.name for call in trace.tool_calls], shared)
    steps_wanted = _steps([tool.name for tool in expected], shared)
    stated = expectation.answer_uses_tools
    return match_tools(
        [
            Use(name=call.name, parameters=object_of(call.arguments) or {}, step=step)
            for call, step in zip(trace.tool_calls, steps_made, strict=True)
        ],
        [
            Use(name=tool.name, parameters=tool.arguments, step=step)
            for tool, step in zip(expected, steps_wanted, strict=True)
        ],
        order_matters=expectation.tool_order_matters,
        answer_uses_tools=answer_uses_tools(trace) if stated is None else stated,
        weights=weights,
        threshold=threshold,
    )


def _steps(names: Sequence[str], shared: set[str]) -> list[int | None]:
    count = itertools.count(1)
    return [next(count) if name in shared else None for name in names]


def answer_uses_tools(trace: Trace) -> bool:
    """Whether the answer repeats a number or a word of 5+ letters of a tool result that the question lacks."""
    question = _telling(trace.input or "")
    answer = _telling(trace.output or "") - question
    return any(answer & _telling(text_of(call.result)) for call in trace.tool_calls)


def _telling(text: str) -> set[str]:
    return set(_TELLING.findall(text.lower()))

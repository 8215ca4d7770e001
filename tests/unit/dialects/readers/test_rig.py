"""rig."""

from typing import Any

import pytest

from evaluators.model import Trace
from tests.support.conventions import CHAT, tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.weather import ANSWER, QUESTION

COUNTS = {"gen_ai.usage.input_tokens": "5", "gen_ai.usage.output_tokens": "3"}


def span(target: str, attributes: dict[str, Any], parent: int = 0) -> SpanSpec:
    given = {"target": target, "busy_ns": 1, "idle_ns": 1, **attributes}
    return SpanSpec(id=2, parent=parent, name="step", scope="shop", attributes=given)


def alone(target: str = "rig::agent_chat", **attributes: Any) -> Trace:
    return trace_of(span(target, attributes))


def test_the_agents_span_is_the_turn_and_has_the_counts() -> None:
    given = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    trace = alone(**given, **COUNTS, **{"gen_ai.prompt": QUESTION, "gen_ai.completion": ANSWER})

    assert (trace.input, trace.output, trace.agent) == (QUESTION, ANSWER, "helper")
    assert (trace.tokens.input, trace.tokens.output) == (5, 3)
    assert trace.is_turn


@pytest.mark.parametrize("step", [{**CHAT, **COUNTS}, tool("get_weather")])
def test_a_step_alone_is_no_turn(step: dict[str, Any]) -> None:
    trace = alone(**step)

    assert not trace.is_turn
    assert (trace.tokens.input, trace.cost_usd) == (None, None)
    assert len(trace.tool_calls) + len(trace.model_calls) == 1


def test_steps_under_a_span_of_the_application_are_a_turn() -> None:
    step = span("rig::agent_chat", {**CHAT, **COUNTS}, parent=1)
    trace = trace_of({NAME: "turn"}, step)

    assert trace.is_turn
    assert trace.tokens.input == 5


def test_a_model_that_is_called_without_an_agent_is_a_turn() -> None:
    assert alone("rig::completions", **CHAT, **COUNTS).is_turn

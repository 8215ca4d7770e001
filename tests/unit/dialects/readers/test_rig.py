"""rig."""

from typing import Any

from tests.support.conventions import CHAT, tool
from tests.support.dialect_spans import NAME, trace_of
from tests.support.table import for_each

COUNTS = {"gen_ai.usage.input_tokens": "5", "gen_ai.usage.output_tokens": "3"}


def span(own: dict[str, Any], target: str = "rig::agent_chat") -> dict[str, Any]:
    return {NAME: "step", "target": target, "busy_ns": 1, "idle_ns": 1, **own}


@for_each("step", [{**CHAT, **COUNTS}, tool()])
def test_a_step_alone_is_no_turn(step: dict[str, Any]) -> None:
    trace = trace_of(span(step))

    assert not trace.is_turn
    assert (trace.tokens.input, trace.cost_usd) == (None, None)
    assert len(trace.tool_calls) + len(trace.model_calls) == 1


def test_steps_under_a_span_of_the_application_are_a_turn() -> None:
    trace = trace_of({NAME: "turn"}, span({**CHAT, **COUNTS}))

    assert trace.is_turn
    assert trace.tokens.input == 5


def test_a_model_that_is_called_without_an_agent_is_a_turn() -> None:
    assert trace_of(span({**CHAT, **COUNTS}, "rig::completions")).is_turn

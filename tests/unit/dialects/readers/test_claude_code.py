"""Claude Code."""

from typing import Any

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import QUESTION, one_call


def test_claude_codes_execution_inside_a_tool_tells_that_it_failed() -> None:
    def span(id_: int, parent: int, kind: str, **attributes: Any) -> SpanSpec:
        scope = "com.anthropic.claude_code.tracing"
        return SpanSpec(
            id=id_,
            parent=parent,
            scope=scope,
            start=id_,
            end=9,
            attributes={"span.type": kind, **attributes},
        )

    trace = trace_of(
        span(1, 0, "interaction", user_prompt=QUESTION),
        span(2, 1, "llm_request", input_tokens=7, output_tokens=2, model="claude-sonnet-4"),
        span(3, 1, "tool", tool_use_id="t1", **{"gen_ai.tool.name": "get_weather"}),
        span(4, 3, "tool.execution", tool_use_id="t1", success=False, error="timed out"),
    )

    assert (trace.input, trace.tokens.input) == (QUESTION, 7)
    assert (one_call(trace).name, one_call(trace).error) == ("get_weather", "timed out")

"""Claude Code's spans."""

from tests.support.agent_records import claude_span
from tests.support.dialect_spans import trace_of
from tests.support.weather import QUESTION, one_call


def test_claude_codes_execution_inside_a_tool_tells_that_it_failed() -> None:
    used = {"tool_use_id": "t1", "gen_ai__tool__name": "get_weather"}
    asked = {"input_tokens": 7, "output_tokens": 2, "model": "claude-sonnet-4"}
    trace = trace_of(
        claude_span(1, "interaction", 1, 9, user_prompt=QUESTION),
        claude_span(2, "llm_request", 2, 9, parent=1, **asked),
        claude_span(3, "tool", 3, 9, parent=1, **used),
        claude_span(
            4, "tool.execution", 4, 9, parent=3, tool_use_id="t1", success=False, error="timed out"
        ),
    )

    assert (trace.input, trace.tokens.input) == (QUESTION, 7)
    assert (one_call(trace).name, one_call(trace).error) == ("get_weather", "timed out")

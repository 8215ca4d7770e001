"""The normalised trace as it is printed."""

from evaluators.dialects.show import show
from tests.support.conventions import tool
from tests.support.dialect_spans import SpanSpec, trace_of

CONTRACT = """
trace_id service agent agents session_id session_source user_id task_id input output tokens cost_usd models
tools_offered tool_calls status error root closed dialects spans truncated gaps
"""


def test_show_has_the_contracts_names_in_their_order() -> None:
    shown = show(trace_of(SpanSpec(id=1, attributes=tool("f"), start=1_000)))

    assert list(shown)[:23] == CONTRACT.split()
    assert list(shown["tool_calls"][0]) == [
        "id",
        "name",
        "arguments",
        "result",
        "error",
        "rejected",
        "agent",
        "span_id",
    ]
    assert shown["start"] == "1970-01-01T00:00:01.000000Z"


def test_show_has_the_steps_of_agents() -> None:
    said = '[{"role": "assistant", "parts": [{"type": "text", "content": "Search."}]}]'
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "Orchestrator",
        "gen_ai.output.messages": said,
    }

    shown = show(trace_of(SpanSpec(id=1, attributes=attributes)))

    assert shown["agents"] == ["Orchestrator"]
    assert shown["steps"] == [
        {"agent": "Orchestrator", "output": "Search.", "span_id": "0000000000000001"}
    ]

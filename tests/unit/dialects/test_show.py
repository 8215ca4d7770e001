"""The normalised trace as it is printed."""

from evaluators.dialects.show import show
from tests.support.conventions import AGENT, says, tool
from tests.support.dialect_spans import SpanSpec, trace_of

CONTRACT = """
trace_id service agent agents session_id session_source user_id task_id input output tokens cost_usd models
tools_offered tool_calls status error root closed dialects spans truncated gaps
"""


def test_show_has_the_contracts_names_in_their_order() -> None:
    shown = show(trace_of(SpanSpec(attributes=tool("f"), start=1_000)))

    assert list(shown)[:23] == CONTRACT.split()
    of_call = "id name arguments result error rejected agent span_id"
    assert list(shown["tool_calls"][0]) == of_call.split()
    assert shown["start"] == "1970-01-01T00:00:01.000000Z"


def test_show_has_the_steps_of_agents() -> None:
    said = {"gen_ai.agent.name": "Orchestrator", "gen_ai.output.messages": says("Search.")}

    shown = show(trace_of(AGENT | said))

    step = {"agent": "Orchestrator", "output": "Search.", "span_id": "0000000000000001"}
    assert (shown["agents"], shown["steps"]) == (["Orchestrator"], [step])

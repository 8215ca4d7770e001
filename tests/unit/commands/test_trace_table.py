"""`spanwise inspect` as a table."""

from __future__ import annotations

import io

from collector.commands.output import trace_table
from evaluators.model import AgentStep, ToolCall, Trace
from tests.support.api_records import trace


def table(*traces: Trace) -> str:
    stream = io.StringIO()
    trace_table(stream, traces)
    return stream.getvalue()


def test_steps_of_agents_have_a_column_where_there_are_any() -> None:
    steps = (AgentStep(span_id="1", agent="Orchestrator"), AgentStep(span_id="2", agent="Surfer"))

    shown = table(trace(1, steps=steps, tool_calls=()), trace(2))

    assert "steps" in shown
    assert "Orchestrator Surfer" in shown
    assert "steps" not in table(trace(2))


def test_a_refused_call_is_not_marked_as_a_failed_one() -> None:
    failed = ToolCall(name="look", error="timed out")
    refused = ToolCall(name="drop", error="no", rejected="user")

    shown = table(trace(1, tool_calls=(failed, refused)))

    assert "look!" in shown
    assert "drop!" not in shown
    assert "(refused)" in shown

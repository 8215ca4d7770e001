"""A test of an agent by its scores: pytest runs the agent, Spanwise scores the spans that it ended."""

import json

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import spanwise

SPANS = InMemorySpanExporter()
PROVIDER = TracerProvider()
PROVIDER.add_span_processor(SimpleSpanProcessor(SPANS))
trace.set_tracer_provider(PROVIDER)


@pytest.fixture(autouse=True)
def _only_spans_of_this_test() -> None:
    SPANS.clear()


def said(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def ask_helper(question: str) -> str:
    """Your agent. This one writes its spans by hand; a framework's instrumentation writes them for you."""
    span = trace.get_tracer("helper").start_as_current_span
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find_order"}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}
    answer = "Order 17 has shipped."
    with span("invoke_agent helper", attributes=agent):
        with span("execute_tool find_order", attributes=tool) as call:
            call.set_attribute("gen_ai.tool.call.arguments", '{"id": 17}')
            call.set_attribute("gen_ai.tool.call.result", "shipped")
        with span("chat gpt-4o-mini", attributes=chat) as model:
            model.set_attribute("gen_ai.input.messages", said("user", question))
            model.set_attribute("gen_ai.output.messages", said("assistant", answer))
    return answer


def test_helper_finds_an_order() -> None:
    ask_helper("Where is order 17?")

    traces = spanwise.read(SPANS.get_finished_spans())

    assert traces[0].output == "Order 17 has shipped."
    assert [call.name for call in traces[0].tool_calls] == ["find_order"]
    spanwise.assert_scores(traces, agent_reliability=0.8, tool_correctness=1.0)

"""Agents of agno, beeai, LlamaIndex and Haystack under OpenInference."""

from typing import Any

import pytest

from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump, one_call


@pytest.mark.parametrize("key", ["graph.node.name", "agent_name"])
def test_an_agent_has_its_own_name_not_its_random_id(key: str) -> None:
    trace = trace_of(
        {
            NAME: "Weather_Agent.run",
            "openinference.span.kind": "AGENT",
            "graph.node.id": "4f1c0de51a7b99aa",
            key: "Weather Agent",
            "session.id": "s-1",
            "input.value": QUESTION,
            "output.value": ANSWER,
        },
        {
            NAME: "get_weather",
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "tool.description": "The weather.",
            "tool.parameters": dump(ARGUMENTS),
            "input.value": dump(ARGUMENTS),
            "output.value": RESULT,
        },
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id) == ("Weather Agent", "s-1")


def test_a_beeai_tool_has_its_own_arguments() -> None:
    tool = SpanSpec(
        id=2,
        parent=1,
        name="get_weather",
        scope="@arizeai/openinference-instrumentation-beeai",
        attributes={
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "tool.description": "The weather.",
            "tool.json_schema": dump({"type": "object", "properties": {"city": {}}}),
            "input.value": dump({"input": ARGUMENTS, "options": None}),
            "output.value": RESULT,
        },
    )

    trace = trace_of({}, tool)

    call = one_call(trace)
    assert (call.arguments, call.result) == (ARGUMENTS, RESULT)
    (offered,) = trace.tools_offered
    assert offered.parameters == {"type": "object", "properties": {"city": {}}}


def test_a_llama_index_agent_under_openinference() -> None:
    trace = trace_of(
        {
            NAME: "FunctionAgent.run",
            "openinference.span.kind": "AGENT",
            "input.value": dump({"user_msg": QUESTION}),
            "output.value": ANSWER,
        },
        {
            NAME: "FunctionTool.acall",
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "tool.description": "get_weather(city: str)",
            "tool.parameters": dump({"properties": {"city": {"type": "string"}}}),
            "input.value": dump({"kwargs": ARGUMENTS}),
            "output.value": RESULT,
        },
        scope="openinference.instrumentation.llama_index",
    )

    assert_whole(trace)
    assert trace.agent == "FunctionAgent"


def test_a_llama_index_tool_says_its_name_and_result_in_its_output() -> None:
    output: dict[str, Any] = {
        "blocks": [{"block_type": "text", "text": RESULT}],
        "tool_name": "get_weather",
        "raw_input": {"args": [], "kwargs": ARGUMENTS},
        "raw_output": RESULT,
        "is_error": False,
    }
    traceloop = {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "FunctionTool",
        "traceloop.entity.input": dump({"kwargs": ARGUMENTS}),
        "traceloop.entity.output": dump(output),
    }
    openinference = {
        "openinference.span.kind": "TOOL",
        "tool.name": "get_weather",
        "input.value": dump({"kwargs": ARGUMENTS}),
        "output.value": dump(output),
    }
    for attributes in (traceloop, openinference):
        scope = "openinference.instrumentation.llama_index"
        tool = SpanSpec(
            id=2, parent=1, name="FunctionTool.tool", scope=scope, attributes=attributes
        )

        call = one_call(trace_of({}, tool))

        assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def test_a_haystack_pipeline_under_openinference() -> None:
    said = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
    messages = "llm.input_messages"
    trace = trace_of(
        {
            NAME: "Pipeline.run",
            "openinference.span.kind": "CHAIN",
            "input.value": dump({"data": {"llm": {"messages": "..."}}, "include": None}),
            "output.value": dump({"llm": {"replies": ["ChatMessage(...)"]}}),
        },
        {
            NAME: "OpenAIChatGenerator.run",
            **said,
            f"{messages}.0.message.role": "user",
            f"{messages}.0.message.content": QUESTION,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": ANSWER,
            "llm.token_count.prompt": 3,
            "llm.token_count.completion": 4,
        },
    )

    assert (trace.tokens.input, trace.tokens.output) == (3, 4)
    assert trace.model_calls[0].output == ANSWER


def test_the_frameworks_own_name_of_an_agent_is_before_the_instrumentations() -> None:
    named = {"openinference.span.kind": "AGENT", "agent.name": "strands_agent"}
    trace = trace_of({**named, "gen_ai.agent.name": "clerk"})

    assert trace.agent == "clerk"


def test_a_workflow_around_an_agent_is_not_the_agent() -> None:
    agent = {"openinference.span.kind": "AGENT"}
    outer = {**agent, "agent.name": "Support workflow"}
    inner = {**agent, "agent.name": "clerk"}

    assert trace_of(outer, inner).agent == "clerk"
    assert trace_of(outer).agent == "Support workflow"

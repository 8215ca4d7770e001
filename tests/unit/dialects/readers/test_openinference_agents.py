"""Agents of agno, beeai, LlamaIndex and Haystack under OpenInference."""

from typing import Any

from tests.support.dialect_spans import NAME, trace_of
from tests.support.openai_messages import assert_whole
from tests.support.openinference import SCOPE, flat, of
from tests.support.table import for_each
from tests.support.weather import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RESULT,
    SAID,
    USER,
    dump,
    one_call,
)


def tool(**own: Any) -> dict[str, Any]:
    return {NAME: "get_weather", **of("TOOL", tool__name="get_weather", **own)}


@for_each("key", ["graph.node.name", "agent_name"])
def test_an_agent_has_its_own_name_not_its_random_id(key: str) -> None:
    ids = {"graph__node__id": "4f1c0de51a7b99aa", "session__id": "s-1", key: "Weather Agent"}
    given = dump(ARGUMENTS)
    own = {"tool__description": "The weather.", "tool__parameters": given, "input__value": given}
    trace = trace_of(
        {
            NAME: "Weather_Agent.run",
            **of("AGENT", input__value=QUESTION, output__value=ANSWER, **ids),
        },
        tool(**own, output__value=RESULT),
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id) == ("Weather Agent", "s-1")


def test_a_beeai_tool_has_its_own_arguments() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"city": {}}}
    own = {
        "tool__description": "The weather.",
        "tool__json_schema": dump(schema),
        "input__value": dump({"input": ARGUMENTS, "options": None}),
        "output__value": RESULT,
    }
    trace = trace_of({}, tool(**own), scope="@arizeai/openinference-instrumentation-beeai")

    call = one_call(trace)
    assert (call.arguments, call.result) == (ARGUMENTS, RESULT)
    (offered,) = trace.tools_offered
    assert offered.parameters == schema


def test_a_llama_index_agent_under_openinference() -> None:
    agent = of("AGENT", input__value=dump({"user_msg": QUESTION}), output__value=ANSWER)
    own = {
        "tool__description": "get_weather(city: str)",
        "tool__parameters": dump({"properties": {"city": {"type": "string"}}}),
        "input__value": dump({"kwargs": ARGUMENTS}),
        "output__value": RESULT,
    }
    trace = trace_of(
        {NAME: "FunctionAgent.run", **agent},
        {**tool(**own), NAME: "FunctionTool.acall"},
        scope=SCOPE + "llama_index",
    )

    assert_whole(trace)
    assert trace.agent == "FunctionAgent"


def test_a_llama_index_tool_says_its_name_and_result_in_its_output() -> None:
    given = dump({"kwargs": ARGUMENTS})
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
        "traceloop.entity.input": given,
        "traceloop.entity.output": dump(output),
    }
    for own in (traceloop, tool(input__value=given, output__value=dump(output))):
        trace = trace_of({}, {**own, NAME: "FunctionTool.tool"}, scope=SCOPE + "llama_index")

        call = one_call(trace)
        assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def test_a_haystack_pipeline_under_openinference() -> None:
    sides = {
        "input__value": dump({"data": {"llm": {"messages": "..."}}, "include": None}),
        "output__value": dump({"llm": {"replies": ["ChatMessage(...)"]}}),
    }
    counts = {"llm__token_count__prompt": 3, "llm__token_count__completion": 4}
    messages = flat("input", USER) | flat("output", SAID)
    trace = trace_of(
        {NAME: "Pipeline.run", **of("CHAIN", **sides)},
        {
            NAME: "OpenAIChatGenerator.run",
            **of("LLM", llm__model_name="gpt-4o", **counts),
            **messages,
        },
    )

    assert (trace.tokens.input, trace.tokens.output) == (3, 4)
    assert trace.model_calls[0].output == ANSWER


def test_the_frameworks_own_name_of_an_agent_is_before_the_instrumentations() -> None:
    named = of("AGENT", agent__name="strands_agent", gen_ai__agent__name="clerk")

    assert trace_of(named).agent == "clerk"


def test_a_workflow_around_an_agent_is_not_the_agent() -> None:
    outer, inner = (of("AGENT", agent__name=name) for name in ("Support workflow", "clerk"))

    assert trace_of(outer, inner).agent == "clerk"
    assert trace_of(outer).agent == "Support workflow"

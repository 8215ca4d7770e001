"""Agents of agno, beeai, LlamaIndex and Haystack under OpenInference."""

from typing import Any

from tests.support.dialect_spans import NAME, trace_of
from tests.support.openinference import SCOPE, of
from tests.support.weather import (
    ARGUMENTS,
    RESULT,
    dump,
    one_call,
)


def tool(**own: Any) -> dict[str, Any]:
    return {NAME: "get_weather", **of("TOOL", tool__name="get_weather", **own)}


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


def test_the_frameworks_own_name_of_an_agent_is_before_the_instrumentations() -> None:
    named = of("AGENT", agent__name="strands_agent", gen_ai__agent__name="clerk")

    assert trace_of(named).agent == "clerk"


def test_a_workflow_around_an_agent_is_not_the_agent() -> None:
    outer, inner = (of("AGENT", agent__name=name) for name in ("Support workflow", "clerk"))

    assert trace_of(outer, inner).agent == "clerk"
    assert trace_of(outer).agent == "Support workflow"

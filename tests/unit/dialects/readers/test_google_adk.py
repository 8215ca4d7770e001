"""Google's ADK, also 1.x."""

from typing import Any

import pytest

from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact, dump, one_call
from tests.support.whole_traces import SCHEMA, assert_whole_turn

ADK = "gcp.vertex.agent"


@pytest.mark.parametrize(
    ("reported", "error"),
    [
        ({"status": "error", "error_message": "timed out"}, "timed out"),
        ({"status": "error", "error_message": "timed out", "city": "Paris"}, "timed out"),
        ({"status": "error", "message": "timed out"}, "timed out"),
        ({"status": "error"}, "error"),
        ({"status": "error", "city": "Paris", "orders": 3}, None),
        ({"status": "error", "orders": 3}, None),
    ],
)
@pytest.mark.parametrize("scope", [ADK, "openinference.instrumentation.google_adk"])
def test_adk_tools_that_report_failure_as_its_documentation_says(
    scope: str, reported: dict[str, Any], error: str | None
) -> None:
    called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
    told = {f"{ADK}.tool_call_args": ARGUMENTS, f"{ADK}.tool_response": reported}
    if scope != ADK:
        called = {"openinference.span.kind": "TOOL", "tool.name": "get_weather"}
        response = {"id": "a1", "name": "get_weather", "response": reported}
        told = {"input.value": ARGUMENTS, "output.value": response}
    attributes = {**called, **{key: compact(value) for key, value in told.items()}}
    span = SpanSpec(id=1, name="execute_tool get_weather", scope=scope, attributes=attributes)

    assert one_call(trace_of(span)).error == error


def test_older_google_adk_keeps_everything_under_its_own_keys() -> None:
    request = {"model": "gemini", "contents": [{"role": "user", "parts": [{"text": QUESTION}]}]}
    asked = {
        "content": {
            "role": "model",
            "parts": [{"function_call": {"name": "get_weather", "args": ARGUMENTS}}],
        }
    }
    said = {"content": {"role": "model", "parts": [{"text": ANSWER}]}}
    call = {f"{ADK}.session_id": "s-1", f"{ADK}.invocation_id": "e-1", "gen_ai.system": ADK}
    trace = trace_of(
        {NAME: "invocation"},
        {NAME: "agent_run [weather_agent]"},
        SpanSpec(
            id=3,
            parent=2,
            name="call_llm",
            scope=ADK,
            start=1,
            end=2,
            attributes={
                **call,
                f"{ADK}.llm_request": dump(request),
                f"{ADK}.llm_response": dump(asked),
            },
        ),
        SpanSpec(
            id=4,
            parent=2,
            name="execute_tool get_weather",
            scope=ADK,
            start=3,
            end=4,
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.id": "<not specified>",
                f"{ADK}.llm_request": "{}",
                f"{ADK}.llm_response": "{}",
                f"{ADK}.tool_call_args": dump(ARGUMENTS),
                f"{ADK}.tool_response": dump({"result": RESULT}),
            },
        ),
        SpanSpec(
            id=5,
            parent=2,
            name="call_llm",
            scope=ADK,
            start=5,
            end=6,
            attributes={
                **call,
                f"{ADK}.llm_request": dump(request),
                f"{ADK}.llm_response": dump(said),
            },
        ),
        scope=ADK,
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id) == ("weather_agent", "s-1")
    assert one_call(trace).id is None


def test_two_older_adk_calls_without_an_id_are_two_calls_and_emptied_ones_say_nothing() -> None:
    def tool(id_: int) -> SpanSpec:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "<not specified>",
            f"{ADK}.tool_call_args": "{}",
            f"{ADK}.tool_response": "{}",
        }
        return SpanSpec(id=id_, parent=1, scope=ADK, start=id_, attributes=attributes)

    trace = trace_of({}, tool(2), tool(3))

    assert [(c.id, c.arguments, c.result) for c in trace.tool_calls] == [(None, None, None)] * 2


def test_a_whole_trace_of_google_adk_gemini() -> None:
    """ADK 1.x: whole Gemini requests and responses."""
    declared = {"function_declarations": [{"name": "get_weather", "parameters": SCHEMA}]}
    asked = {"role": "user", "parts": [{"text": QUESTION}]}
    call = {"function_call": {"id": "c1", "name": "get_weather", "args": ARGUMENTS}}
    result = {
        "function_response": {"id": "c1", "name": "get_weather", "response": {"result": RESULT}}
    }

    def model(contents: Any, parts: Any, given: int, came: int) -> dict[str, Any]:
        config = {"system_instruction": "Be brief.", "tools": [declared]}
        counts = {"prompt_token_count": given, "candidates_token_count": came}
        answer = {"content": {"role": "model", "parts": parts}, "usage_metadata": counts}
        return {
            "gen_ai.request.model": "gemini-2.0-flash",
            "gcp.vertex.agent.llm_request": dump({"contents": contents, "config": config}),
            "gcp.vertex.agent.llm_response": dump(answer),
        }

    history = [asked, {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    assert_whole_turn(
        scope="gcp.vertex.agent",
        root_name="agent_run [helper]",
        root={},
        llm_name="call_llm",
        first=model([asked], [call], 100, 10),
        tool_name="execute_tool get_weather",
        tool={
            "gcp.vertex.agent.tool_call_args": dump(ARGUMENTS),
            "gcp.vertex.agent.tool_response": dump({"result": RESULT}),
        },
        last=model(history, [{"text": ANSWER}], 150, 20),
    )

"""The conventions under scopes with names of their own: Semantic Kernel, Microsoft.Extensions.AI, AgentCore."""

import json
from typing import Any

from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import CALL, assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact, dump, one_call


def test_semantic_kernel_names_the_functions_it_offers() -> None:
    trace = trace_of(
        {
            NAME: "AutoFunctionInvocationLoop",
            "sk.available_functions": "Weather-get_weather,Travel-book",
        },
        scope="semantic_kernel.connectors.ai.chat_completion_client_base",
    )

    assert [tool.name for tool in trace.tools_offered] == ["get_weather", "book"]


KERNEL = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"


KERNEL_CALL: dict[str, Any] = {
    **CALL,
    "function": {"name": "WeatherPlugin-get_weather", "arguments": json.dumps(ARGUMENTS)},
}


def kernel_call(id_: int, prompt: list[Any], said: Any, *, start: int) -> SpanSpec:
    return SpanSpec(
        id=id_,
        parent=1,
        name="chat.completions gpt-4o",
        scope=KERNEL,
        start=start,
        end=start + 1,
        attributes={
            "gen_ai.operation.name": "chat.completions",
            "gen_ai.system": "openai",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.response.id": f"r{id_}",
            "gen_ai.response.prompt_tokens": 5,
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.output_tokens": 1,
        },
        events=[
            ("gen_ai.content.prompt", {"gen_ai.prompt": dump(prompt)}),
            ("gen_ai.content.completion", {"gen_ai.completion": dump(said)}),
        ],
    )


def test_semantic_kernel_functions_lose_their_plugins_name() -> None:
    asked = {"role": "user", "content": QUESTION}
    called = {"role": "assistant", "tool_calls": [KERNEL_CALL]}
    answered = {"role": "tool", "tool_call_id": "c1", "content": RESULT}
    trace = trace_of(
        {NAME: "AutoFunctionInvocationLoop"},
        kernel_call(2, [asked], [{"message": called, "finish_reason": "tool_calls"}], start=1),
        {
            NAME: "execute_tool WeatherPlugin-get_weather",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "WeatherPlugin-get_weather",
            "gen_ai.tool.call.id": "c1",
        },
        kernel_call(
            4,
            [asked, called, answered],
            [{"message": {"role": "assistant", "content": ANSWER}}],
            start=5,
        ),
        scope="semantic_kernel.functions.kernel_function",
    )

    assert_whole(trace)
    assert one_call(trace).span_id is not None
    assert trace.tokens.input == 10


def test_dotnet_kernel_names_with_an_underscore_lose_a_plugins_name_too() -> None:
    tool = SpanSpec(
        id=2,
        parent=1,
        scope="Microsoft.SemanticKernel",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "WeatherPlugin_get_weather",
        },
    )

    assert one_call(trace_of({}, tool)).name == "get_weather"


def test_a_dash_in_another_frameworks_tool_is_part_of_its_name() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "SearchPlugin-look-up"}

    assert one_call(trace_of({}, tool)).name == "SearchPlugin-look-up"


def test_agent_core_spans_carry_their_session_as_an_attribute() -> None:
    trace = trace_of(
        SpanSpec(
            id=1,
            name="invoke_agent Weather",
            scope="strands.telemetry.tracer",
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "Weather",
                "session.id": "s-1",
                "aws.local.service": "weather.DEFAULT",
                "gen_ai.usage.input_tokens": 4,
            },
            events=[
                ("gen_ai.user.message", {"content": dump([{"text": QUESTION}])}),
                ("gen_ai.choice", {"message": ANSWER, "finish_reason": "end_turn"}),
            ],
        )
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert (trace.session_id, trace.agent, trace.tokens.input) == ("s-1", "Weather", 4)


def test_microsoft_extensions_ai() -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    call = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": ARGUMENTS}
    answers = [
        [{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}],
        [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}],
    ]
    chats = [
        SpanSpec(
            id=10 + number,
            parent=1,
            scope="Experimental.Microsoft.Extensions.AI",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": json.dumps(asked, indent=2),
                "gen_ai.output.messages": json.dumps(answer, indent=2),
                "gen_ai.usage.input_tokens": 5,
            },
            start=50 * number + 1,
            end=50 * number + 9,
        )
        for number, answer in enumerate(answers)
    ]
    tool = SpanSpec(
        id=3,
        parent=1,
        name="execute_tool get_weather",
        scope="Experimental.Microsoft.Extensions.AI",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": compact(ARGUMENTS),
            "gen_ai.tool.call.result": compact(RESULT),
        },
        start=20,
        end=30,
    )
    root = {"gen_ai.operation.name": "orchestrate_tools"}

    trace = trace_of(root, *chats, tool)

    assert (trace.input, trace.output, trace.tokens.input) == (QUESTION, ANSWER, 10)
    assert [(c.arguments, c.result) for c in trace.tool_calls] == [(ARGUMENTS, RESULT)]

"""The conventions under scopes with names of their own: Semantic Kernel, Microsoft.Extensions.AI, AgentCore."""

import json
from typing import Any

from tests.support.conventions import CHAT, HELPER, asked, asks, says, tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import CALL, FUNCTION, TOLD, assert_whole
from tests.support.table import for_each
from tests.support.weather import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RESULT,
    SAID,
    USER,
    compact,
    dump,
    one_call,
)

KERNEL = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"


def test_semantic_kernel_names_the_functions_it_offers() -> None:
    functions = {"sk.available_functions": "Weather-get_weather,Travel-book"}
    trace = trace_of({NAME: "AutoFunctionInvocationLoop", **functions}, scope=KERNEL)

    assert [each.name for each in trace.tools_offered] == ["get_weather", "book"]


def kernel_call(id_: str, prompt: list[Any], said: Any) -> SpanSpec:
    attributes = {
        "gen_ai.operation.name": "chat.completions",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.id": id_,
        "gen_ai.response.prompt_tokens": 5,
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 1,
    }
    events = [
        ("gen_ai.content.prompt", {"gen_ai.prompt": dump(prompt)}),
        ("gen_ai.content.completion", {"gen_ai.completion": dump([said])}),
    ]
    return SpanSpec(name="chat.completions gpt-4o", attributes=attributes, events=events)


def test_semantic_kernel_functions_lose_their_plugins_name() -> None:
    name = "WeatherPlugin-get_weather"
    call = {**CALL, "function": {**FUNCTION, "name": name}}
    called = {"role": "assistant", "tool_calls": [call]}
    trace = trace_of(
        {NAME: "AutoFunctionInvocationLoop"},
        kernel_call("r2", [USER], {"message": called, "finish_reason": "tool_calls"}),
        {NAME: f"execute_tool {name}", **tool(name, "c1")},
        kernel_call("r4", [USER, called, TOLD], {"message": SAID}),
        scope=KERNEL,
    )

    assert_whole(trace)
    assert one_call(trace).span_id is not None
    assert trace.tokens.input == 10


@for_each(
    "scope,name,plain",
    [
        ("Microsoft.SemanticKernel", "WeatherPlugin_get_weather", "get_weather"),
        ("", "SearchPlugin-look-up", "SearchPlugin-look-up"),
    ],
)
def test_a_plugins_name_is_lost_in_dotnet_too_but_not_in_another_framework(
    scope: str, name: str, plain: str
) -> None:
    assert one_call(trace_of({}, tool(name), scope=scope)).name == plain


def test_agent_core_spans_carry_their_session_as_an_attribute() -> None:
    attributes = {
        **HELPER,
        "session.id": "s-1",
        "aws.local.service": "weather.DEFAULT",
        "gen_ai.usage.input_tokens": 4,
    }
    events = [
        ("gen_ai.user.message", {"content": dump([{"text": QUESTION}])}),
        ("gen_ai.choice", {"message": ANSWER, "finish_reason": "end_turn"}),
    ]
    span = SpanSpec(name="invoke_agent helper", attributes=attributes, events=events)
    trace = trace_of(span, scope="strands.telemetry.tracer")

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert (trace.session_id, trace.agent, trace.tokens.input) == ("s-1", "helper", 4)


def test_microsoft_extensions_ai() -> None:
    def chat(answer: str) -> dict[str, Any]:
        sides = {"input": asked(QUESTION), "output": answer}
        indented = {
            f"gen_ai.{side}.messages": json.dumps(json.loads(text), indent=2)
            for side, text in sides.items()
        }
        return {**CHAT, **indented, "gen_ai.usage.input_tokens": 5}

    trace = trace_of(
        {"gen_ai.operation.name": "orchestrate_tools"},
        chat(asks("c1")),
        tool("get_weather", "c1", compact(ARGUMENTS), compact(RESULT)),
        chat(says()),
        scope="Experimental.Microsoft.Extensions.AI",
    )

    assert_whole(trace)
    assert trace.tokens.input == 10

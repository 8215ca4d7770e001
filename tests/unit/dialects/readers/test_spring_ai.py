"""Spring AI."""

from __future__ import annotations

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact


def test_spring_ai() -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "5"}
    trace = trace_of(
        SpanSpec(
            id=1,
            name="spring_ai chat_client",
            attributes={
                "spring.ai.kind": "chat_client",
                "gen_ai.operation.name": "framework",
                "gen_ai.system": "spring_ai",
                "spring.ai.chat.client.conversation.id": "s-1",
                "spring.ai.chat.client.tool.names": compact(["get_weather"]),
            },
            end=99,
        ),
        SpanSpec(
            id=2,
            parent=1,
            attributes={**chat, "spring.ai.model.request.tool.names": compact(["get_weather"])},
            events=[
                ("gen_ai.content.prompt", {"gen_ai.prompt": ["Be kind.", QUESTION]}),
                ("gen_ai.content.completion", {"gen_ai.completion": [ANSWER]}),
            ],
            start=1,
            end=90,
        ),
        SpanSpec(
            id=3,
            parent=2,
            name="tool_call get_weather",
            attributes={
                "spring.ai.kind": "tool_call",
                "gen_ai.operation.name": "framework",
                "spring.ai.tool.definition.name": "get_weather",
                "spring.ai.tool.call.arguments": compact(ARGUMENTS),
                "spring.ai.tool.call.result": compact(RESULT),
            },
            start=10,
            end=20,
        ),
    )

    assert (trace.input, trace.output, trace.session_id) == (QUESTION, ANSWER, "s-1")
    assert (trace.tokens.input, len(trace.model_calls)) == (5, 1)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)

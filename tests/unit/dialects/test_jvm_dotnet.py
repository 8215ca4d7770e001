"""Stacks of Java and .NET, written after their sources and cut to what a rule needs."""

from __future__ import annotations

import json

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact

# --- Spring AI (ChatClientObservationDocumentation, ToolCallingObservationDocumentation) -----------------------------


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


# --- Microsoft.Extensions.AI (OpenTelemetryChatClient, FunctionInvokingChatClient) -----------------------------------


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
    root = SpanSpec(id=1, attributes={"gen_ai.operation.name": "orchestrate_tools"}, end=99)

    trace = trace_of(root, *chats, tool)

    assert (trace.input, trace.output, trace.tokens.input) == (QUESTION, ANSWER, 10)
    assert [(c.arguments, c.result) for c in trace.tool_calls] == [(ARGUMENTS, RESULT)]

"""The Vercel AI SDK."""

from tests.support.dialect_spans import NAME, trace_of
from tests.support.openai_messages import assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact, dump
from tests.support.whole_traces import PROMPT, SCHEMA, assert_whole_turn, usages


def test_vercel_version_4_names() -> None:
    call = {"toolCallType": "function", "toolCallId": "c1", "toolName": "get_weather"}
    usage = {"ai.usage.promptTokens": 7, "ai.usage.completionTokens": 2}
    ask = dump([{"role": "user", "content": [{"type": "text", "text": QUESTION}]}])
    trace = trace_of(
        {
            NAME: "ai.generateText",
            "ai.operationId": "ai.generateText",
            "ai.telemetry.functionId": "weather-agent",
            "ai.telemetry.metadata.sessionId": "s-1",
            "ai.prompt": dump({"prompt": QUESTION}),
            "ai.response.text": ANSWER,
            "ai.usage.promptTokens": 14,
            "ai.usage.completionTokens": 4,
        },
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.prompt.format": "prompt",
            "ai.prompt.messages": ask,
            "ai.prompt.tools": [
                dump({"type": "function", "name": "get_weather", "parameters": {}})
            ],
            "ai.response.toolCalls": dump([{**call, "args": dump(ARGUMENTS)}]),
            **usage,
        },
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "get_weather",
            "ai.toolCall.id": "c1",
            "ai.toolCall.args": dump(ARGUMENTS),
            "ai.toolCall.result": dump(RESULT),
        },
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.prompt.messages": ask,
            "ai.response.text": ANSWER,
            **usage,
        },
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id) == ("weather-agent", "s-1")
    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_a_whole_trace_of_vercel_v4() -> None:
    one, two = usages("ai.usage.", "promptTokens", "completionTokens")
    tool = {"type": "function", "name": "get_weather", "parameters": SCHEMA}
    call = {
        "toolCallType": "function",
        "toolCallId": "c1",
        "toolName": "get_weather",
        "args": dump(ARGUMENTS),
    }
    assert_whole_turn(
        scope="ai",
        root={
            "ai.operationId": "ai.generateText",
            "ai.telemetry.functionId": "helper",
            "ai.prompt": dump({"system": "Be brief.", "prompt": QUESTION}),
            "ai.usage.promptTokens": 250,
        },
        first={
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.prompt.messages": dump(PROMPT),
            "ai.prompt.tools": [dump(tool)],
            "ai.response.toolCalls": dump([call]),
            **one,
        },
        tool={
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "get_weather",
            "ai.toolCall.id": "c1",
            "ai.toolCall.args": dump(ARGUMENTS),
            "ai.toolCall.result": dump(RESULT),
        },
        last={"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": ANSWER, **two},
    )


def test_what_it_renames_in_the_ai_sdks_spans() -> None:
    chat = {
        "ai.operationId": "ai.generateText.doGenerate",
        "llm.request.functions.0.name": "get_weather",
    }
    tool = {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "get_weather",
        "traceloop.entity.input": compact(ARGUMENTS),
        "traceloop.entity.output": compact(RESULT),
    }

    trace = trace_of({}, chat, tool)

    assert [offered.name for offered in trace.tools_offered] == ["get_weather"]
    assert [(c.arguments, c.result) for c in trace.tool_calls] == [(ARGUMENTS, RESULT)]

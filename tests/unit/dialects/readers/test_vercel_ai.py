"""The Vercel AI SDK."""

from typing import Any

from tests.support.dialect_spans import NAME, trace_of, under
from tests.support.openai_messages import assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact, dump
from tests.support.whole_traces import PROMPT, SCHEMA, assert_whole_turn, usages

SPECIFIED = {"type": "function", "name": "get_weather", "parameters": SCHEMA}
CALLED = {"toolCallType": "function", "toolCallId": "c1", "toolName": "get_weather"}
CALLS = dump([{**CALLED, "args": dump(ARGUMENTS)}])


def ai(operation: str, **own: Any) -> dict[str, Any]:
    return under("ai.", operationId=f"ai.{operation}", **own)


def generate(**own: Any) -> dict[str, Any]:
    return ai("generateText.doGenerate", **own)


SIDES = {"toolCall__args": dump(ARGUMENTS), "toolCall__result": dump(RESULT)}
TOOL = ai("toolCall", toolCall__name="get_weather", toolCall__id="c1", **SIDES)


def test_vercel_version_4_names() -> None:
    usage = {"usage__promptTokens": 7, "usage__completionTokens": 2}
    sums = {"usage__promptTokens": 14, "usage__completionTokens": 4}
    ask = dump([{"role": "user", "content": [{"type": "text", "text": QUESTION}]}])
    telemetry = {
        "telemetry__functionId": "weather-agent",
        "telemetry__metadata__sessionId": "s-1",
    }
    first = {"prompt__format": "prompt", "prompt__tools": [dump(SPECIFIED)]}
    root = ai(
        "generateText",
        prompt=dump({"prompt": QUESTION}),
        response__text=ANSWER,
        **telemetry,
        **sums,
    )
    trace = trace_of(
        {NAME: "ai.generateText", **root},
        generate(prompt__messages=ask, response__toolCalls=CALLS, **first, **usage),
        TOOL,
        generate(prompt__messages=ask, response__text=ANSWER, **usage),
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id) == ("weather-agent", "s-1")
    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_a_whole_trace_of_vercel_v4() -> None:
    one, two = usages("ai.usage.", "promptTokens", "completionTokens")
    sent = {"prompt__messages": dump(PROMPT), "prompt__tools": [dump(SPECIFIED)]}
    asked = dump({"system": "Be brief.", "prompt": QUESTION})
    assert_whole_turn(
        scope="ai",
        root=ai(
            "generateText", telemetry__functionId="helper", prompt=asked, usage__promptTokens=250
        ),
        first={**generate(**sent, response__toolCalls=CALLS), **one},
        tool=TOOL,
        last={**generate(response__text=ANSWER), **two},
    )


def test_what_it_renames_in_the_ai_sdks_spans() -> None:
    sides = under("traceloop.entity.", input=compact(ARGUMENTS), output=compact(RESULT))
    offering = {**generate(), "llm.request.functions.0.name": "get_weather"}

    trace = trace_of({}, offering, {**ai("toolCall", toolCall__name="get_weather"), **sides})

    assert [offered.name for offered in trace.tools_offered] == ["get_weather"]
    assert [(c.arguments, c.result) for c in trace.tool_calls] == [(ARGUMENTS, RESULT)]

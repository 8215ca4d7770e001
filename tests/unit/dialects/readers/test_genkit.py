"""Genkit."""

from typing import Any

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact


def test_genkit() -> None:
    def span(number: int, parent: int, subtype: str, name: str, **more: Any) -> SpanSpec:
        given = {
            "genkit:type": "action",
            "genkit:metadata:subtype": subtype,
            "genkit:name": name,
            **{f"genkit:{key}": compact(value) for key, value in more.items()},
        }
        return SpanSpec(
            id=number,
            parent=parent,
            attributes=given,
            start=number,
            end=number * 10 if parent else 99,
        )

    question = {"role": "user", "content": [{"text": QUESTION}]}
    asked = {"toolRequest": {"name": "get_weather", "ref": "c1", "input": ARGUMENTS}}
    trace = trace_of(
        span(1, 0, "flow", "weather", input=QUESTION, output=ANSWER),
        span(
            2,
            1,
            "model",
            "openai/gpt-4o-mini",
            input={"messages": [question], "tools": [{"name": "get_weather", "inputSchema": {}}]},
            output={
                "message": {"role": "model", "content": [asked]},
                "usage": {"inputTokens": 5, "outputTokens": 3, "cachedContentTokens": 2},
            },
        ),
        span(3, 1, "tool", "get_weather", input=ARGUMENTS, output=RESULT),
    )

    assert (trace.input, trace.output, trace.agents) == (QUESTION, ANSWER, ("weather",))
    assert (trace.tokens.input, trace.tokens.output, trace.tokens.cached) == (5, 3, 2)
    assert trace.models == ("gpt-4o-mini",)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    (call,) = trace.tool_calls
    assert (call.id, call.arguments, call.result) == ("c1", ARGUMENTS, RESULT)


def test_the_input_of_the_outermost_flow_may_name_the_session() -> None:
    given = {
        "genkit:type": "action",
        "genkit:metadata:subtype": "flow",
        "genkit:name": "weather",
        "genkit:isRoot": True,
        "genkit:input": compact({"question": QUESTION, "sessionId": "s-1"}),
    }
    trace = trace_of(given)

    assert (trace.session_id, trace.session_source, trace.input) == ("s-1", "genkit", QUESTION)


def test_an_attribute_says_the_session_before_the_flows_input() -> None:
    given = {"genkit:type": "action", "genkit:metadata:subtype": "flow", "genkit:isRoot": True}
    given |= {"genkit:input": compact({"sessionId": "s-1"}), "session.id": "s-2"}
    assert trace_of(given).session_id == "s-2"

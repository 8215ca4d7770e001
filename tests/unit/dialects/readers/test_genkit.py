"""Genkit."""

from typing import Any

from tests.support.dialect_spans import trace_of, under
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact, one_call


def action(subtype: str, name: str, **sides: Any) -> dict[str, Any]:
    own = {key: compact(value) for key, value in sides.items()}
    return under("genkit:", type="action", name=name, **{"metadata:subtype": subtype}, **own)


def test_genkit() -> None:
    question = {"role": "user", "content": [{"text": QUESTION}]}
    asked = {"toolRequest": {"name": "get_weather", "ref": "c1", "input": ARGUMENTS}}
    tools: list[Any] = [{"name": "get_weather", "inputSchema": {}}]
    answer = {
        "message": {"role": "model", "content": [asked]},
        "usage": {"inputTokens": 5, "outputTokens": 3, "cachedContentTokens": 2},
    }
    sent: dict[str, Any] = {"messages": [question], "tools": tools}
    trace = trace_of(
        action("flow", "weather", input=QUESTION, output=ANSWER),
        action("model", "openai/gpt-4o-mini", input=sent, output=answer),
        action("tool", "get_weather", input=ARGUMENTS, output=RESULT),
    )

    assert (trace.input, trace.output, trace.agents) == (QUESTION, ANSWER, ("weather",))
    assert (trace.tokens.input, trace.tokens.output, trace.tokens.cached) == (5, 3, 2)
    assert trace.models == ("gpt-4o-mini",)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    call = one_call(trace)
    assert (call.id, call.arguments, call.result) == ("c1", ARGUMENTS, RESULT)


def test_the_input_of_the_outermost_flow_may_name_the_session_unless_an_attribute_does() -> None:
    given = {"question": QUESTION, "sessionId": "s-1"}
    flow = {**action("flow", "weather", input=given), "genkit:isRoot": True}
    trace = trace_of(flow)

    assert (trace.session_id, trace.session_source, trace.input) == ("s-1", "genkit", QUESTION)
    assert trace_of({**flow, "session.id": "s-2"}).session_id == "s-2"

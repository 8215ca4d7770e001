"""pydantic-ai, also before 0.1."""

from typing import Any

from tests.support.conventions import CHAT
from tests.support.dialect_spans import NAME, trace_of
from tests.support.openai_messages import ASKED, CALL
from tests.support.openinference import calls, of
from tests.support.weather import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RESULT,
    SAID,
    USER,
    dump,
    one_call,
)
from tests.support.whole_traces import SCHEMA, assert_whole_turn, usages

SCOPE = "pydantic-ai"


def event(name: str, /, **more: Any) -> dict[str, Any]:
    return {"event.name": f"gen_ai.{name}", **more}


SENT = event("user.message", **USER)


def test_pydantic_ai_before_0_1_tells_a_failed_tool_by_its_retry_prompt() -> None:
    def chat(*events: Any) -> dict[str, Any]:
        return {**CHAT, "events": dump(events)}

    words = "timed out\n\nFix the errors and try again."
    returned = event("tool.message", role="tool", id="c1", content=words)
    said = event("choice", message=SAID)
    trace = trace_of(
        {},
        chat(SENT, event("choice", message=ASKED)),
        chat(SENT, event("assistant.message", **ASKED), returned, said),
        scope=SCOPE,
    )

    assert one_call(trace).error == words


def test_a_pydantic_ai_span_with_openinference_notes_is_read_as_its_own() -> None:
    words = {"user": ("Hello", QUESTION), "assistant": ("Hi", ANSWER)}
    messages = [
        {"role": role, "parts": [{"type": "text", "content": words[role][n]}]}
        for n in (0, 1)
        for role in words
    ]
    own = {
        "agent_name": "guide",
        "final_result": ANSWER,
        "pydantic_ai.all_messages": dump(messages),
    }
    tool = {"tool_arguments": dump(ARGUMENTS), "tool_response": RESULT}
    trace = trace_of(
        {NAME: "agent run", **of("AGENT", input__value="Hello", output__value=ANSWER), **own},
        {NAME: "running tool", **of("TOOL", gen_ai__tool__name="get_weather"), **tool},
        scope=SCOPE,
    )

    assert (trace.input, trace.output, trace.agent) == (QUESTION, ANSWER, "guide")
    assert calls(trace) == [("get_weather", ARGUMENTS, RESULT, False)]


def test_a_whole_trace_of_pydantic_ai_events() -> None:
    """pydantic-ai before its messages became attributes: `events` and `all_messages_events`."""
    one, two = usages("gen_ai.usage.", "input_tokens", "output_tokens")
    asked = {"role": "assistant", "tool_calls": [CALL]}
    of_tool = {"role": "tool", "id": "c1", "name": "get_weather", "content": RESULT}
    sent = [event("system.message", role="system", content="Be brief."), SENT]
    history = [*sent, event("assistant.message", **asked), event("tool.message", **of_tool)]
    parameters = {"function_tools": [{"name": "get_weather", "parameters_json_schema": SCHEMA}]}
    common = {**CHAT, "model_request_parameters": dump(parameters)}

    def events(before: list[Any], message: dict[str, Any]) -> dict[str, Any]:
        return {"events": dump([*before, event("choice", index=0, message=message)])}

    assert_whole_turn(
        scope=SCOPE,
        root_name="agent run",
        root={
            "agent_name": "helper",
            "final_result": ANSWER,
            "all_messages_events": dump(history),
            "gen_ai.usage.input_tokens": 250,
        },
        first={**common, **one, **events(sent, asked)},
        tool_name="running tool",
        tool={
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "tool_arguments": dump(ARGUMENTS),
        },
        last={**common, **two, **events(history, SAID)},
    )

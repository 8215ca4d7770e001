"""pydantic-ai, also before 0.1."""

from typing import Any

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.openai_messages import ASKED, CALL
from tests.support.openinference import calls
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
from tests.support.whole_traces import SCHEMA, assert_whole_turn, usages


def test_pydantic_ai_before_0_1_tells_a_failed_tool_by_its_retry_prompt() -> None:
    def chat(id_: int, *events: Any) -> SpanSpec:
        attributes = {"gen_ai.operation.name": "chat", "events": compact(list(events))}
        return SpanSpec(id=id_, scope="pydantic-ai", start=id_, end=id_, attributes=attributes)

    words = "timed out\n\nFix the errors and try again."
    asked = {"event.name": "gen_ai.user.message", **USER}
    returned = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": words}
    said = {"event.name": "gen_ai.choice", "message": SAID}
    trace = trace_of(
        chat(1, asked, {"event.name": "gen_ai.choice", "message": ASKED}),
        chat(2, asked, {"event.name": "gen_ai.assistant.message", **ASKED}, returned, said),
    )

    assert one_call(trace).error == words


def test_a_pydantic_ai_span_with_openinference_notes_is_read_as_its_own() -> None:
    messages = [
        {"role": "user", "parts": [{"type": "text", "content": "Hello"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]},
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
        {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]},
    ]
    root = SpanSpec(
        id=1,
        name="agent run",
        scope="pydantic-ai",
        attributes={
            "openinference.span.kind": "AGENT",
            "input.value": "Hello",
            "output.value": ANSWER,
            "agent_name": "guide",
            "final_result": ANSWER,
            "pydantic_ai.all_messages": dump(messages),
        },
    )
    tool = SpanSpec(
        id=2,
        parent=1,
        name="running tool",
        scope="pydantic-ai",
        attributes={
            "openinference.span.kind": "TOOL",
            "gen_ai.tool.name": "get_weather",
            "tool_arguments": dump(ARGUMENTS),
            "tool_response": RESULT,
        },
    )
    trace = trace_of(root, tool)

    assert (trace.input, trace.output, trace.agent) == (QUESTION, ANSWER, "guide")
    assert calls(trace) == [("get_weather", ARGUMENTS, RESULT, False)]


def test_a_whole_trace_of_pydantic_ai_events() -> None:
    """pydantic-ai before its messages became attributes: `events` and `all_messages_events`."""
    one, two = usages("gen_ai.usage.", "input_tokens", "output_tokens")
    system = {"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief."}
    user = {"event.name": "gen_ai.user.message", "role": "user", "content": QUESTION}
    asked = {"role": "assistant", "tool_calls": [CALL]}
    result = {
        "event.name": "gen_ai.tool.message",
        "role": "tool",
        "id": "c1",
        "name": "get_weather",
        "content": RESULT,
    }
    chosen = {"event.name": "gen_ai.choice", "index": 0, "message": asked}
    done = {
        "event.name": "gen_ai.choice",
        "index": 0,
        "message": {"role": "assistant", "content": ANSWER},
    }
    again = {"event.name": "gen_ai.assistant.message", **asked}
    parameters = {"function_tools": [{"name": "get_weather", "parameters_json_schema": SCHEMA}]}
    common = {"gen_ai.operation.name": "chat", "model_request_parameters": dump(parameters)}
    assert_whole_turn(
        scope="pydantic-ai",
        root_name="agent run",
        root={
            "agent_name": "helper",
            "final_result": ANSWER,
            "all_messages_events": dump([system, user, again, result]),
            "gen_ai.usage.input_tokens": 250,
        },
        first={**common, **one, "events": dump([system, user, chosen])},
        tool_name="running tool",
        tool={
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "tool_arguments": dump(ARGUMENTS),
        },
        last={**common, **two, "events": dump([system, user, again, result, done])},
    )

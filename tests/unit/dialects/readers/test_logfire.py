"""logfire before version 5, and its spans of the Agents SDK."""

from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import NAME, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, SAID, USER, compact, one_call

CHAT = "Chat Completion with {request_data[model]!r}"


def logfire(title: str, request: Any, response: Any = None) -> dict[str, Any]:
    """A span with the request and the answer that it wraps."""
    answer = {} if response is None else {"response_data": compact(response)}
    return {NAME: title, "request_data": compact(request), **answer}


def in_turn(*spans: dict[str, Any], scope: str = "logfire.openai") -> Trace:
    return trace_of({NAME: "turn"}, *spans, scope=scope)


def test_a_streamed_logfire_call_is_one_call() -> None:
    request = {"messages": [USER], "stream": True}
    streamed = "streaming response from {request_data[model]!r} took {duration:.2f}s"
    answer = {"combined_chunk_content": ANSWER, "chunk_count": 3}
    trace = in_turn(logfire(CHAT, request), logfire(streamed, request, answer))

    assert (trace.input, trace.output, len(trace.model_calls)) == (QUESTION, ANSWER, 1)


def test_logfires_responses_are_events_with_the_answer_last() -> None:
    asked = {"event.name": "gen_ai.user.message", **USER}
    said = {"event.name": "gen_ai.assistant.message", **SAID}
    former = {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Hello."}
    events = compact([former, asked, said])
    trace = trace_of({NAME: "Responses API", "events": events}, scope="logfire.openai")

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_logfires_spans_of_the_agents_sdk() -> None:
    def response(sent: Any, **answer: Any) -> dict[str, Any]:
        title = "Responses API with {gen_ai.request.model!r}"
        return {NAME: title, "raw_input": compact(sent), "response": compact(answer)}

    call = {"type": "function_call", "call_id": "c1", "name": "get_weather"}
    call["arguments"] = compact(ARGUMENTS)
    output = {"type": "function_call_output", "call_id": "c1", "output": RESULT}
    text = {"type": "output_text", "text": ANSWER}
    last = {"type": "message", "role": "assistant", "content": [text]}
    failure = {"message": "Error running tool", "data": {"error": "timed out"}}
    sides = {"input": compact(ARGUMENTS), "output": RESULT, "error": compact(failure)}
    trace = trace_of(
        {NAME: "OpenAI Agents trace: {name}", "group_id": "s1", "name": "Workflow"},
        {NAME: "Agent run: {name!r}", "name": "Helper", "tools": '["get_weather"]'},
        response([USER], instructions="Be brief.", output=[call]),
        {NAME: "Function: {name}", "name": "get_weather", **sides},
        response([USER, call, output], output=[last]),
        scope="logfire.openai_agents",
    )

    assert (trace.input, trace.output, trace.session_id) == (QUESTION, ANSWER, "s1")
    assert (trace.agents, trace.system) == (("Helper",), "Be brief.")
    assert (one_call(trace).error, one_call(trace).id) == ("timed out", "c1")


def test_a_group_of_another_instrumentation_is_no_session() -> None:
    assert trace_of({NAME: "consume", "group_id": "billing"}).session_source == "trace"

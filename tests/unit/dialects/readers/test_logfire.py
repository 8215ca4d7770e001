"""logfire before version 5, and its spans of the Agents SDK."""

from typing import Any

from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import ASKED, TOLD, assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, SAID, USER, compact, one_call


def logfire(id_: int, title: str, *, scope: str = "logfire.openai", **attributes: Any) -> SpanSpec:
    return SpanSpec(
        id=id_,
        parent=id_ > 1,
        name=title,
        scope=scope,
        start=id_,
        end=id_ + 1,
        attributes=attributes,
    )


def test_logfire_4_chat_completions() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    tools = [{"type": "function", "function": {"name": "get_weather"}}]
    first = compact({"messages": [USER], "tools": tools, "model": "gpt-4o"})
    trace = trace_of(
        logfire(1, "turn", scope="logfire"),
        logfire(
            2,
            "Chat Completion with {request_data[model]!r}",
            request_data=first,
            response_data=compact({"message": ASKED, "usage": usage}),
        ),
        logfire(
            3,
            "Chat Completion with {request_data[model]!r}",
            request_data=compact({"messages": [USER, ASKED, TOLD]}),
            response_data=compact({"message": SAID, "usage": usage}),
        ),
    )

    assert_whole(trace)
    assert (trace.tokens.input, trace.tokens.output) == (14, 4)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    assert trace.models == ("gpt-4o",)


def test_a_streamed_logfire_call_is_one_call() -> None:
    request = compact({"messages": [USER], "stream": True})
    trace = trace_of(
        logfire(1, "turn", scope="logfire"),
        logfire(2, "Chat Completion with {request_data[model]!r}", request_data=request),
        logfire(
            3,
            "streaming response from {request_data[model]!r} took {duration:.2f}s",
            request_data=request,
            response_data=compact({"combined_chunk_content": ANSWER, "chunk_count": 3}),
        ),
    )

    assert (trace.input, trace.output, len(trace.model_calls)) == (QUESTION, ANSWER, 1)


def test_logfires_anthropic_calls_have_their_arguments_one_level_down() -> None:
    wrapped = {"function": {"name": "get_weather", "arguments": compact({"input": ARGUMENTS})}}
    use = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": RESULT}
    history = [USER, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    trace = trace_of(
        logfire(1, "turn", scope="logfire"),
        logfire(
            2,
            "Message with {request_data[model]!r}",
            scope="logfire.anthropic",
            request_data=compact({"messages": [USER], "system": "Be brief."}),
            response_data=compact({"message": {"role": "assistant", "tool_calls": [wrapped]}}),
        ),
        logfire(
            3,
            "Message with {request_data[model]!r}",
            scope="logfire.anthropic",
            request_data=compact({"messages": history}),
            response_data=compact({"message": SAID}),
        ),
    )

    assert_whole(trace)
    assert trace.system == "Be brief."


def test_logfires_responses_are_events_with_the_answer_last() -> None:
    asked = {"event.name": "gen_ai.user.message", **USER}
    said = {"event.name": "gen_ai.assistant.message", **SAID}
    former = {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Hello."}
    trace = trace_of(logfire(1, "Responses API", events=compact([former, asked, said])))

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_logfires_spans_of_the_agents_sdk() -> None:
    scope = "logfire.openai_agents"
    call = {"type": "function_call", "call_id": "c1", "name": "get_weather"}
    call["arguments"] = compact(ARGUMENTS)
    output = {"type": "function_call_output", "call_id": "c1", "output": RESULT}
    last = {"type": "message", "role": "assistant"}
    last_message = {**last, "content": [{"type": "output_text", "text": ANSWER}]}
    failure = {"message": "Error running tool", "data": {"error": "timed out"}}
    trace = trace_of(
        logfire(1, "OpenAI Agents trace: {name}", scope=scope, group_id="s1", name="Workflow"),
        logfire(2, "Agent run: {name!r}", scope=scope, name="Helper", tools='["get_weather"]'),
        logfire(
            3,
            "Responses API with {gen_ai.request.model!r}",
            scope=scope,
            raw_input=compact([USER]),
            response=compact({"instructions": "Be brief.", "output": [call]}),
        ),
        logfire(
            4,
            "Function: {name}",
            scope=scope,
            name="get_weather",
            input=compact(ARGUMENTS),
            output=RESULT,
            error=compact(failure),
        ),
        logfire(
            5,
            "Responses API with {gen_ai.request.model!r}",
            scope=scope,
            raw_input=compact([USER, call, output]),
            response=compact({"output": [last_message]}),
        ),
    )

    assert (trace.input, trace.output, trace.session_id) == (QUESTION, ANSWER, "s1")
    assert (trace.agents, trace.system) == (("Helper",), "Be brief.")
    assert (one_call(trace).error, one_call(trace).id) == ("timed out", "c1")


def test_a_group_of_another_instrumentation_is_no_session() -> None:
    trace = trace_of({NAME: "consume", "group_id": "billing"})

    assert trace.session_source == "trace"

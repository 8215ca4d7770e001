"""logfire before version 5, LiteLLM and Haystack: tracing of their own."""

from __future__ import annotations

from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.openai_messages import ASKED, TOLD, assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, SAID, USER, compact, one_call

# --- logfire before version 5 -----------------------------------------------------------------------------------------


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
    history = [
        USER,
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
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
    trace = trace_of(SpanSpec(id=1, name="consume", attributes={"group_id": "billing"}))

    assert trace.session_source == "trace"


# --- LiteLLM ----------------------------------------------------------------------------------------------------------


def test_litellms_raw_request_has_the_calls_that_its_own_span_loses() -> None:
    def pair(id_: int, messages: list[Any], said: dict[str, Any]) -> tuple[SpanSpec, SpanSpec]:
        outer = {
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.response.id": f"r{id_}",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": QUESTION,
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.usage.prompt_tokens": 7,
            "gen_ai.usage.completion_tokens": 2,
        }
        raw = {
            "llm.openai.messages": repr(messages),
            "llm.openai.choices": repr([{"index": 0, "message": said}]),
            "llm.openai.id": f"r{id_}",
        }
        return (
            SpanSpec(id=id_, parent=1, scope="litellm", start=id_, end=id_ + 1, attributes=outer),
            SpanSpec(
                id=id_ + 1, parent=id_, scope="litellm", start=id_, end=id_ + 1, attributes=raw
            ),
        )

    trace = trace_of(
        SpanSpec(id=1, name="turn", end=9),
        *pair(2, [USER], ASKED),
        *pair(4, [USER, ASKED, TOLD], SAID),
    )

    assert_whole(trace)
    assert (trace.tokens.input, len(trace.model_calls)) == (14, 2)


def test_a_litellm_session_is_what_the_caller_gave_not_a_generated_id() -> None:
    def of(trace_id: str) -> str:
        span = SpanSpec(id=1, scope="litellm", attributes={"litellm.trace_id": trace_id})
        return trace_of(span).session_source

    assert of("chat-7") == "litellm.trace_id"
    assert of("0a4f04d4-6b5d-4d0f-9c55-0b2a5f4b6f0e") == "trace"


# --- Haystack ---------------------------------------------------------------------------------------------------------


def block(**content: Any) -> dict[str, Any]:
    return {"meta": {}, "name": None, "content": [content]}


HAYSTACK_CALL = {"tool_name": "get_weather", "arguments": ARGUMENTS, "id": "c1"}


HAYSTACK_USER = {"role": "user", **block(text=QUESTION)}


HAYSTACK_ASKED = {"role": "assistant", **block(tool_call=HAYSTACK_CALL)}


def component(id_: int, kind: str, given: Any, came: Any) -> SpanSpec:
    attributes = {
        "haystack.component.type": kind,
        "haystack.component.input": compact(given),
        "haystack.component.output": compact(came),
    }
    return SpanSpec(id=id_, parent=1, start=id_, end=id_ + 1, attributes=attributes)


def haystack(*, failed: bool, underscore: bool = False) -> Trace:
    told = block(tool_call_result={"result": RESULT, "origin": HAYSTACK_CALL, "error": failed})
    answer = {
        "role": "assistant",
        **block(text=ANSWER),
        "meta": {"model": "gpt-4o", "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
    }
    asked = HAYSTACK_USER
    if underscore:
        answer, asked = ({f"_{k}": v for k, v in m.items()} for m in (answer, asked))
    return trace_of(
        SpanSpec(
            id=1,
            name="haystack.pipeline.run",
            attributes={"haystack.pipeline.input_data": compact({"agent": {"messages": [asked]}})},
            end=9,
        ),
        component(2, "OpenAIChatGenerator", {"messages": [asked]}, {"replies": [HAYSTACK_ASKED]}),
        component(3, "ToolInvoker", {}, {"tool_messages": [{"role": "tool", **told}]}),
        component(4, "OpenAIChatGenerator", {"messages": [asked]}, {"replies": [answer]}),
    )


def test_haystack_2_components() -> None:
    trace = haystack(failed=False)

    assert_whole(trace)
    assert (trace.tokens.input, trace.models) == (7, ("gpt-4o",))
    assert haystack(failed=True).tool_calls[0].error == RESULT


def test_haystack_before_2_13_names_its_fields_with_an_underscore() -> None:
    trace = haystack(failed=False, underscore=True)

    assert (trace.input, trace.output, trace.tokens.output) == (QUESTION, ANSWER, 2)

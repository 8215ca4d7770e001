"""Frameworks and vendors with tracing of their own, in the shapes of older and newer versions."""

from __future__ import annotations

import json
from typing import Any

from evaluators.model import ToolCall, Trace
from tests.support.dialect_spans import Made, trace_of

QUESTION = "Is it raining in Paris?"
ANSWER = "Yes, it rains."
ARGUMENTS = {"city": "Paris"}
RESULT = "rainy, 14 C"
USER = {"role": "user", "content": QUESTION}
SAID = {"role": "assistant", "content": ANSWER}
FUNCTION = {"name": "get_weather", "arguments": json.dumps(ARGUMENTS)}
CALL = {"id": "c1", "type": "function", "function": FUNCTION}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": RESULT}


def dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def one_call(trace: Trace) -> ToolCall:
    (call,) = trace.tool_calls
    return call


def assert_whole(trace: Trace) -> None:
    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    call = one_call(trace)
    assert (call.name, call.arguments, call.result, call.error) == (
        "get_weather",
        ARGUMENTS,
        RESULT,
        None,
    )


# --- Langfuse before observation types (langfuse 3.0 to 3.2) ----------------------------------------------------------


def langfuse(id_: int, kind: str, *, name: str, start: int, **more: Any) -> Made:
    attributes = {f"langfuse.observation.{key}": value for key, value in more.items()}
    return Made(
        id=id_,
        parent=1,
        name=name,
        scope="langfuse-sdk",
        start=start,
        end=start + 1,
        attributes={"langfuse.observation.type": kind, **attributes},
    )


def generation(id_: int, given: list[Any], came: Any, *, start: int) -> Made:
    return langfuse(
        id_, "generation", name="OpenAI", start=start, input=dump(given), output=dump(came)
    )


def test_a_span_named_as_a_requested_tool_is_its_execution() -> None:
    failed = {"level": "ERROR", "status_message": "timed out"}
    trace = trace_of(
        Made(id=1, name="turn", end=9, scope="langfuse-sdk"),
        generation(2, [USER], ASKED, start=1),
        langfuse(
            3,
            "span",
            name="get_weather",
            start=3,
            input=dump({"args": [], "kwargs": ARGUMENTS}),
            **failed,
        ),
        generation(4, [USER, ASKED, TOLD], SAID, start=5),
    )

    call = one_call(trace)
    assert (call.error, call.span_id, call.arguments) == ("timed out", f"{3:016x}", ARGUMENTS)


def test_parallel_calls_take_the_spans_of_their_own_arguments() -> None:
    other = {"id": "c2", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    both = {"role": "assistant", "tool_calls": [CALL, other]}
    rome = {"input": dump({"args": [], "kwargs": {"city": "Rome"}}), "output": "sunny"}
    paris = {"input": dump({"args": [], "kwargs": ARGUMENTS}), "output": RESULT}
    trace = trace_of(
        Made(id=1, name="turn", end=9, scope="langfuse-sdk"),
        generation(2, [USER], both, start=1),
        langfuse(3, "span", name="get_weather", start=3, **rome),
        langfuse(4, "span", name="get_weather", start=4, **paris),
    )

    found = {dump(call.arguments): call.result for call in trace.tool_calls}
    assert found == {dump(ARGUMENTS): RESULT, dump({"city": "Rome"}): "sunny"}


def test_a_streamed_call_without_its_id_is_found_once_and_has_its_result() -> None:
    nameless = {"role": "assistant", "tool_calls": [{"function": FUNCTION}]}
    trace = trace_of(
        Made(id=1, name="turn", end=9, scope="langfuse-sdk"),
        generation(2, [USER], nameless, start=1),
        langfuse(
            3,
            "generation",
            name="OpenAI",
            start=5,
            input=dump([USER, ASKED, TOLD]),
            output=ANSWER,
        ),
    )

    assert_whole(trace)
    assert one_call(trace).id == "c1"


def silent(id_: int, given: list[Any], *, start: int) -> Made:
    return langfuse(id_, "generation", name="OpenAI", start=start, input=dump(given))


def test_a_nameless_call_is_found_once_though_another_answer_is_missing() -> None:
    nameless = {"role": "assistant", "tool_calls": [{"function": FUNCTION}]}
    trace = trace_of(
        Made(id=1, name="turn", end=9, scope="langfuse-sdk"),
        generation(2, [USER], nameless, start=1),
        silent(3, [USER, ASKED, TOLD], start=5),
    )

    assert one_call(trace).result == RESULT


def test_a_plain_text_is_an_answer_so_no_history_is_searched_for_its_calls() -> None:
    first = langfuse(2, "generation", name="OpenAI", start=1, input=dump([USER]), output="Wait.")
    history = [USER, ASKED, TOLD]
    trace = trace_of(
        Made(id=1, name="turn", end=9, scope="langfuse-sdk"),
        first,
        langfuse(3, "generation", name="OpenAI", start=5, input=dump(history), output=ANSWER),
    )

    assert trace.tool_calls == ()


def test_langfuse_3_keeps_the_session_of_its_langchain_handler_in_metadata() -> None:
    metadata = {"metadata.langfuse_session_id": "s1", "metadata.langfuse_user_id": "u1"}
    trace = trace_of(langfuse(1, "span", name="agent", start=0, input=QUESTION, **metadata))

    assert (trace.session_id, trace.user_id) == ("s1", "u1")


# --- MLflow 2 ---------------------------------------------------------------------------------------------------------


def mlflow(id_: int, kind: str, *, parent: int = 1, events: Any = (), **more: Any) -> Made:
    values = {f"mlflow.{key}": value for key, value in more.items()}
    return Made(
        id=id_,
        parent=parent,
        name="get_weather" if kind == "UNKNOWN" else "Completions",
        scope="mlflow.tracing.provider",
        start=id_,
        end=id_ + 1,
        events=events,
        attributes={"mlflow.spanType": dump(kind), **values},
    )


def test_mlflow_2_tokens_are_those_of_the_answer_or_of_its_last_chunk() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    whole = dump({"choices": [{"message": SAID}], "usage": usage})
    chunk = ("mlflow.chunk.item.3", {"mlflow.chunk.value": dump({"choices": [], "usage": usage})})
    trace = trace_of(
        mlflow(1, "AGENT", parent=0, spanInputs=dump({"question": QUESTION})),
        mlflow(2, "CHAT_MODEL", spanInputs=dump({"messages": [USER]}), spanOutputs=whole),
        mlflow(3, "CHAT_MODEL", spanInputs=dump({"messages": [USER]}), events=(chunk,)),
    )

    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_an_untyped_mlflow_span_named_as_a_requested_tool_is_its_execution() -> None:
    asked = dump({"choices": [{"message": ASKED}]})
    trace = trace_of(
        mlflow(1, "AGENT", parent=0, spanInputs=dump({"question": QUESTION})),
        mlflow(2, "CHAT_MODEL", spanInputs=dump({"messages": [USER]}), spanOutputs=asked),
        mlflow(3, "UNKNOWN", spanInputs=dump(ARGUMENTS), spanOutputs=dump(RESULT)),
    )

    call = one_call(trace)
    assert (call.result, call.span_id) == (RESULT, f"{3:016x}")


def test_a_dspy_tool_under_mlflow_says_its_name_and_parameters_apart() -> None:
    said = {"name": dump("get_weather"), "description": dump("Weather."), "args": "{}"}
    own = {"mlflow.spanType": dump("TOOL"), "mlflow.spanInputs": dump(ARGUMENTS)}
    trace = trace_of(Made(id=1, name="Tool.get_weather", attributes={**own, **said}))

    assert one_call(trace).name == "get_weather"
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]


def test_an_mlflow_agent_that_says_only_its_outputs_type_has_no_answer() -> None:
    trace = trace_of(
        mlflow(1, "AGENT", parent=0, spanInputs="null", spanOutputs='{"output_type": "str"}'),
        mlflow(
            2,
            "CHAT_MODEL",
            spanInputs=dump([USER]),
            spanOutputs=dump({"choices": [{"message": SAID}]}),
        ),
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_pydantic_ai_under_mlflow_has_spans_named_for_its_methods() -> None:
    def part(kind: str, **more: Any) -> dict[str, Any]:
        return {"part_kind": kind, **more}

    call = part("tool-call", tool_name="get_weather", args=dump(ARGUMENTS), tool_call_id="c1")
    told = part("tool-return", tool_name="get_weather", content=RESULT, tool_call_id="c1")
    asked = {"kind": "request", "parts": [part("user-prompt", content=QUESTION)]}
    requested = {"kind": "response", "parts": [call]}
    answered = {"kind": "response", "parts": [part("text", content=ANSWER)]}
    counts = dump({"input_tokens": 7, "output_tokens": 2})

    def span(id_: int, title: str, given: Any, came: Any, **more: Any) -> Made:
        values = {"mlflow.spanType": dump("UNKNOWN"), "mlflow.spanInputs": dump(given)}
        values["mlflow.spanOutputs"] = dump(came)
        return Made(
            id=id_,
            parent=id_ > 1,
            name=title,
            start=id_,
            end=id_ + 1,
            attributes={**values, **more},
        )

    messages = [asked, requested, {"kind": "request", "parts": [told]}]
    method, usage = "InstrumentedModel.request", {"mlflow.chat.tokenUsage": counts}
    trace = trace_of(
        span(1, "Agent.run", {"user_prompt": QUESTION}, {"output": ANSWER}, name=dump("helper")),
        span(2, method, {"messages": [asked]}, requested, **usage),
        span(3, "ToolManager.handle_call", {"call": call}, RESULT),
        span(4, method, {"messages": messages}, answered, **usage),
    )

    assert_whole(trace)
    assert (trace.agents, trace.tokens.input) == (("helper",), 14)
    assert (one_call(trace).id, one_call(trace).span_id) == ("c1", f"{3:016x}")


# --- logfire before version 5 -----------------------------------------------------------------------------------------


def logfire(id_: int, title: str, *, scope: str = "logfire.openai", **attributes: Any) -> Made:
    return Made(
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
    first = dump({"messages": [USER], "tools": tools, "model": "gpt-4o"})
    trace = trace_of(
        logfire(1, "turn", scope="logfire"),
        logfire(
            2,
            "Chat Completion with {request_data[model]!r}",
            request_data=first,
            response_data=dump({"message": ASKED, "usage": usage}),
        ),
        logfire(
            3,
            "Chat Completion with {request_data[model]!r}",
            request_data=dump({"messages": [USER, ASKED, TOLD]}),
            response_data=dump({"message": SAID, "usage": usage}),
        ),
    )

    assert_whole(trace)
    assert (trace.tokens.input, trace.tokens.output) == (14, 4)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    assert trace.models == ("gpt-4o",)


def test_a_streamed_logfire_call_is_one_call() -> None:
    request = dump({"messages": [USER], "stream": True})
    trace = trace_of(
        logfire(1, "turn", scope="logfire"),
        logfire(2, "Chat Completion with {request_data[model]!r}", request_data=request),
        logfire(
            3,
            "streaming response from {request_data[model]!r} took {duration:.2f}s",
            request_data=request,
            response_data=dump({"combined_chunk_content": ANSWER, "chunk_count": 3}),
        ),
    )

    assert (trace.input, trace.output, len(trace.model_calls)) == (QUESTION, ANSWER, 1)


def test_logfires_anthropic_calls_have_their_arguments_one_level_down() -> None:
    wrapped = {"function": {"name": "get_weather", "arguments": dump({"input": ARGUMENTS})}}
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
            request_data=dump({"messages": [USER], "system": "Be brief."}),
            response_data=dump({"message": {"role": "assistant", "tool_calls": [wrapped]}}),
        ),
        logfire(
            3,
            "Message with {request_data[model]!r}",
            scope="logfire.anthropic",
            request_data=dump({"messages": history}),
            response_data=dump({"message": SAID}),
        ),
    )

    assert_whole(trace)
    assert trace.system == "Be brief."


def test_logfires_responses_are_events_with_the_answer_last() -> None:
    asked = {"event.name": "gen_ai.user.message", **USER}
    said = {"event.name": "gen_ai.assistant.message", **SAID}
    former = {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Hello."}
    trace = trace_of(logfire(1, "Responses API", events=dump([former, asked, said])))

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_logfires_spans_of_the_agents_sdk() -> None:
    scope = "logfire.openai_agents"
    call = {"type": "function_call", "call_id": "c1", "name": "get_weather"}
    call["arguments"] = dump(ARGUMENTS)
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
            raw_input=dump([USER]),
            response=dump({"instructions": "Be brief.", "output": [call]}),
        ),
        logfire(
            4,
            "Function: {name}",
            scope=scope,
            name="get_weather",
            input=dump(ARGUMENTS),
            output=RESULT,
            error=dump(failure),
        ),
        logfire(
            5,
            "Responses API with {gen_ai.request.model!r}",
            scope=scope,
            raw_input=dump([USER, call, output]),
            response=dump({"output": [last_message]}),
        ),
    )

    assert (trace.input, trace.output, trace.session_id) == (QUESTION, ANSWER, "s1")
    assert (trace.agents, trace.system) == (("Helper",), "Be brief.")
    assert (one_call(trace).error, one_call(trace).id) == ("timed out", "c1")


def test_a_group_of_another_instrumentation_is_no_session() -> None:
    trace = trace_of(Made(id=1, name="consume", attributes={"group_id": "billing"}))

    assert trace.session_source == "trace"


# --- LiteLLM ----------------------------------------------------------------------------------------------------------


def test_litellms_raw_request_has_the_calls_that_its_own_span_loses() -> None:
    def pair(id_: int, messages: list[Any], said: dict[str, Any]) -> tuple[Made, Made]:
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
            Made(id=id_, parent=1, scope="litellm", start=id_, end=id_ + 1, attributes=outer),
            Made(id=id_ + 1, parent=id_, scope="litellm", start=id_, end=id_ + 1, attributes=raw),
        )

    trace = trace_of(
        Made(id=1, name="turn", end=9),
        *pair(2, [USER], ASKED),
        *pair(4, [USER, ASKED, TOLD], SAID),
    )

    assert_whole(trace)
    assert (trace.tokens.input, len(trace.model_calls)) == (14, 2)


def test_a_litellm_session_is_what_the_caller_gave_not_a_generated_id() -> None:
    def of(trace_id: str) -> str:
        span = Made(id=1, scope="litellm", attributes={"litellm.trace_id": trace_id})
        return trace_of(span).session_source

    assert of("chat-7") == "litellm.trace_id"
    assert of("0a4f04d4-6b5d-4d0f-9c55-0b2a5f4b6f0e") == "trace"


# --- Haystack ---------------------------------------------------------------------------------------------------------


def block(**content: Any) -> dict[str, Any]:
    return {"meta": {}, "name": None, "content": [content]}


HAYSTACK_CALL = {"tool_name": "get_weather", "arguments": ARGUMENTS, "id": "c1"}
HAYSTACK_USER = {"role": "user", **block(text=QUESTION)}
HAYSTACK_ASKED = {"role": "assistant", **block(tool_call=HAYSTACK_CALL)}


def component(id_: int, kind: str, given: Any, came: Any) -> Made:
    attributes = {
        "haystack.component.type": kind,
        "haystack.component.input": dump(given),
        "haystack.component.output": dump(came),
    }
    return Made(id=id_, parent=1, start=id_, end=id_ + 1, attributes=attributes)


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
        Made(
            id=1,
            name="haystack.pipeline.run",
            attributes={"haystack.pipeline.input_data": dump({"agent": {"messages": [asked]}})},
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


# --- others -----------------------------------------------------------------------------------------------------------


def test_claude_codes_execution_inside_a_tool_tells_that_it_failed() -> None:
    def span(id_: int, parent: int, kind: str, **attributes: Any) -> Made:
        scope = "com.anthropic.claude_code.tracing"
        return Made(
            id=id_,
            parent=parent,
            scope=scope,
            start=id_,
            end=9,
            attributes={"span.type": kind, **attributes},
        )

    trace = trace_of(
        span(1, 0, "interaction", user_prompt=QUESTION),
        span(2, 1, "llm_request", input_tokens=7, output_tokens=2, model="claude-sonnet-4"),
        span(3, 1, "tool", tool_use_id="t1", **{"gen_ai.tool.name": "get_weather"}),
        span(4, 3, "tool.execution", tool_use_id="t1", success=False, error="timed out"),
    )

    assert (trace.input, trace.tokens.input) == (QUESTION, 7)
    assert (one_call(trace).name, one_call(trace).error) == ("get_weather", "timed out")


def test_tool_spans_that_state_an_error_without_a_status() -> None:
    for attributes in ({"tool.status": "error"}, {"error.type": "ExecutionError"}):
        named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
        trace = trace_of(Made(id=1, attributes={**named, **attributes}))
        assert one_call(trace).error


def test_semantic_kernel_names_the_functions_it_offers() -> None:
    trace = trace_of(
        Made(
            id=1,
            name="AutoFunctionInvocationLoop",
            scope="semantic_kernel.connectors.ai.chat_completion_client_base",
            attributes={"sk.available_functions": "Weather-get_weather,Travel-book"},
        )
    )

    assert [tool.name for tool in trace.tools_offered] == ["get_weather", "book"]


def test_adk_tools_that_report_failure_as_its_documentation_says() -> None:
    response = dump({"status": "error", "error_message": "timed out"})
    trace = trace_of(
        Made(
            id=1,
            name="execute_tool get_weather",
            scope="gcp.vertex.agent",
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gcp.vertex.agent.tool_call_args": dump(ARGUMENTS),
                "gcp.vertex.agent.tool_response": response,
            },
        )
    )

    assert one_call(trace).error == "timed out"


def test_pydantic_ai_before_0_1_tells_a_failed_tool_by_its_retry_prompt() -> None:
    def chat(id_: int, *events: Any) -> Made:
        attributes = {"gen_ai.operation.name": "chat", "events": dump(list(events))}
        return Made(id=id_, scope="pydantic-ai", start=id_, end=id_, attributes=attributes)

    words = "timed out\n\nFix the errors and try again."
    asked = {"event.name": "gen_ai.user.message", **USER}
    told = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": words}
    said = {"event.name": "gen_ai.choice", "message": SAID}
    trace = trace_of(
        chat(1, asked, {"event.name": "gen_ai.choice", "message": ASKED}),
        chat(2, asked, {"event.name": "gen_ai.assistant.message", **ASKED}, told, said),
    )

    assert one_call(trace).error == words

"""Langfuse, MLflow, Claude Code and others with tracing of their own, in their older and newer shapes."""

from __future__ import annotations

from typing import Any

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.openai_messages import ASKED, CALL, FUNCTION, TOLD, assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, SAID, USER, compact, one_call

# --- Langfuse before observation types (langfuse 3.0 to 3.2) ----------------------------------------------------------


def langfuse(id_: int, kind: str, *, name: str, start: int, **more: Any) -> SpanSpec:
    attributes = {f"langfuse.observation.{key}": value for key, value in more.items()}
    return SpanSpec(
        id=id_,
        parent=1,
        name=name,
        scope="langfuse-sdk",
        start=start,
        end=start + 1,
        attributes={"langfuse.observation.type": kind, **attributes},
    )


def generation(id_: int, given: list[Any], came: Any, *, start: int) -> SpanSpec:
    return langfuse(
        id_, "generation", name="OpenAI", start=start, input=compact(given), output=compact(came)
    )


def test_a_span_named_as_a_requested_tool_is_its_execution() -> None:
    failed = {"level": "ERROR", "status_message": "timed out"}
    trace = trace_of(
        SpanSpec(id=1, name="turn", end=9, scope="langfuse-sdk"),
        generation(2, [USER], ASKED, start=1),
        langfuse(
            3,
            "span",
            name="get_weather",
            start=3,
            input=compact({"args": [], "kwargs": ARGUMENTS}),
            **failed,
        ),
        generation(4, [USER, ASKED, TOLD], SAID, start=5),
    )

    call = one_call(trace)
    assert (call.error, call.span_id, call.arguments) == ("timed out", f"{3:016x}", ARGUMENTS)


def test_parallel_calls_take_the_spans_of_their_own_arguments() -> None:
    other = {"id": "c2", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    both = {"role": "assistant", "tool_calls": [CALL, other]}
    rome = {"input": compact({"args": [], "kwargs": {"city": "Rome"}}), "output": "sunny"}
    paris = {"input": compact({"args": [], "kwargs": ARGUMENTS}), "output": RESULT}
    trace = trace_of(
        SpanSpec(id=1, name="turn", end=9, scope="langfuse-sdk"),
        generation(2, [USER], both, start=1),
        langfuse(3, "span", name="get_weather", start=3, **rome),
        langfuse(4, "span", name="get_weather", start=4, **paris),
    )

    found = {compact(call.arguments): call.result for call in trace.tool_calls}
    assert found == {compact(ARGUMENTS): RESULT, compact({"city": "Rome"}): "sunny"}


def test_a_streamed_call_without_its_id_is_found_once_and_has_its_result() -> None:
    nameless = {"role": "assistant", "tool_calls": [{"function": FUNCTION}]}
    trace = trace_of(
        SpanSpec(id=1, name="turn", end=9, scope="langfuse-sdk"),
        generation(2, [USER], nameless, start=1),
        langfuse(
            3,
            "generation",
            name="OpenAI",
            start=5,
            input=compact([USER, ASKED, TOLD]),
            output=ANSWER,
        ),
    )

    assert_whole(trace)
    assert one_call(trace).id == "c1"


def silent(id_: int, given: list[Any], *, start: int) -> SpanSpec:
    return langfuse(id_, "generation", name="OpenAI", start=start, input=compact(given))


def test_a_nameless_call_is_found_once_though_another_answer_is_missing() -> None:
    nameless = {"role": "assistant", "tool_calls": [{"function": FUNCTION}]}
    trace = trace_of(
        SpanSpec(id=1, name="turn", end=9, scope="langfuse-sdk"),
        generation(2, [USER], nameless, start=1),
        silent(3, [USER, ASKED, TOLD], start=5),
    )

    assert one_call(trace).result == RESULT


def test_a_plain_text_is_an_answer_so_no_history_is_searched_for_its_calls() -> None:
    first = langfuse(2, "generation", name="OpenAI", start=1, input=compact([USER]), output="Wait.")
    history = [USER, ASKED, TOLD]
    trace = trace_of(
        SpanSpec(id=1, name="turn", end=9, scope="langfuse-sdk"),
        first,
        langfuse(3, "generation", name="OpenAI", start=5, input=compact(history), output=ANSWER),
    )

    assert trace.tool_calls == ()


def test_langfuse_3_keeps_the_session_of_its_langchain_handler_in_metadata() -> None:
    metadata = {"metadata.langfuse_session_id": "s1", "metadata.langfuse_user_id": "u1"}
    trace = trace_of(langfuse(1, "span", name="agent", start=0, input=QUESTION, **metadata))

    assert (trace.session_id, trace.user_id) == ("s1", "u1")


# --- MLflow 2 ---------------------------------------------------------------------------------------------------------


def mlflow(id_: int, kind: str, *, parent: int = 1, events: Any = (), **more: Any) -> SpanSpec:
    values = {f"mlflow.{key}": value for key, value in more.items()}
    return SpanSpec(
        id=id_,
        parent=parent,
        name="get_weather" if kind == "UNKNOWN" else "Completions",
        scope="mlflow.tracing.provider",
        start=id_,
        end=id_ + 1,
        events=events,
        attributes={"mlflow.spanType": compact(kind), **values},
    )


def test_mlflow_2_tokens_are_those_of_the_answer_or_of_its_last_chunk() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    whole = compact({"choices": [{"message": SAID}], "usage": usage})
    chunk = (
        "mlflow.chunk.item.3",
        {"mlflow.chunk.value": compact({"choices": [], "usage": usage})},
    )
    trace = trace_of(
        mlflow(1, "AGENT", parent=0, spanInputs=compact({"question": QUESTION})),
        mlflow(2, "CHAT_MODEL", spanInputs=compact({"messages": [USER]}), spanOutputs=whole),
        mlflow(3, "CHAT_MODEL", spanInputs=compact({"messages": [USER]}), events=(chunk,)),
    )

    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_an_untyped_mlflow_span_named_as_a_requested_tool_is_its_execution() -> None:
    asked = compact({"choices": [{"message": ASKED}]})
    trace = trace_of(
        mlflow(1, "AGENT", parent=0, spanInputs=compact({"question": QUESTION})),
        mlflow(2, "CHAT_MODEL", spanInputs=compact({"messages": [USER]}), spanOutputs=asked),
        mlflow(3, "UNKNOWN", spanInputs=compact(ARGUMENTS), spanOutputs=compact(RESULT)),
    )

    call = one_call(trace)
    assert (call.result, call.span_id) == (RESULT, f"{3:016x}")


def test_a_dspy_tool_under_mlflow_says_its_name_and_parameters_apart() -> None:
    said = {"name": compact("get_weather"), "description": compact("Weather."), "args": "{}"}
    own = {"mlflow.spanType": compact("TOOL"), "mlflow.spanInputs": compact(ARGUMENTS)}
    trace = trace_of(SpanSpec(id=1, name="Tool.get_weather", attributes={**own, **said}))

    assert one_call(trace).name == "get_weather"
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]


def test_an_mlflow_agent_that_says_only_its_outputs_type_has_no_answer() -> None:
    trace = trace_of(
        mlflow(1, "AGENT", parent=0, spanInputs="null", spanOutputs='{"output_type": "str"}'),
        mlflow(
            2,
            "CHAT_MODEL",
            spanInputs=compact([USER]),
            spanOutputs=compact({"choices": [{"message": SAID}]}),
        ),
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_pydantic_ai_under_mlflow_has_spans_named_for_its_methods() -> None:
    def part(kind: str, **more: Any) -> dict[str, Any]:
        return {"part_kind": kind, **more}

    call = part("tool-call", tool_name="get_weather", args=compact(ARGUMENTS), tool_call_id="c1")
    told = part("tool-return", tool_name="get_weather", content=RESULT, tool_call_id="c1")
    asked = {"kind": "request", "parts": [part("user-prompt", content=QUESTION)]}
    requested = {"kind": "response", "parts": [call]}
    answered = {"kind": "response", "parts": [part("text", content=ANSWER)]}
    counts = compact({"input_tokens": 7, "output_tokens": 2})

    def span(id_: int, title: str, given: Any, came: Any, **more: Any) -> SpanSpec:
        values = {"mlflow.spanType": compact("UNKNOWN"), "mlflow.spanInputs": compact(given)}
        values["mlflow.spanOutputs"] = compact(came)
        return SpanSpec(
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
        span(1, "Agent.run", {"user_prompt": QUESTION}, {"output": ANSWER}, name=compact("helper")),
        span(2, method, {"messages": [asked]}, requested, **usage),
        span(3, "ToolManager.handle_call", {"call": call}, RESULT),
        span(4, method, {"messages": messages}, answered, **usage),
    )

    assert_whole(trace)
    assert (trace.agents, trace.tokens.input) == (("helper",), 14)
    assert (one_call(trace).id, one_call(trace).span_id) == ("c1", f"{3:016x}")


# --- others -----------------------------------------------------------------------------------------------------------


def test_claude_codes_execution_inside_a_tool_tells_that_it_failed() -> None:
    def span(id_: int, parent: int, kind: str, **attributes: Any) -> SpanSpec:
        scope = "com.anthropic.claude_code.tracing"
        return SpanSpec(
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
        trace = trace_of(SpanSpec(id=1, attributes={**named, **attributes}))
        assert one_call(trace).error


def test_semantic_kernel_names_the_functions_it_offers() -> None:
    trace = trace_of(
        SpanSpec(
            id=1,
            name="AutoFunctionInvocationLoop",
            scope="semantic_kernel.connectors.ai.chat_completion_client_base",
            attributes={"sk.available_functions": "Weather-get_weather,Travel-book"},
        )
    )

    assert [tool.name for tool in trace.tools_offered] == ["get_weather", "book"]


def test_adk_tools_that_report_failure_as_its_documentation_says() -> None:
    response = compact({"status": "error", "error_message": "timed out"})
    trace = trace_of(
        SpanSpec(
            id=1,
            name="execute_tool get_weather",
            scope="gcp.vertex.agent",
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gcp.vertex.agent.tool_call_args": compact(ARGUMENTS),
                "gcp.vertex.agent.tool_response": response,
            },
        )
    )

    assert one_call(trace).error == "timed out"


def test_pydantic_ai_before_0_1_tells_a_failed_tool_by_its_retry_prompt() -> None:
    def chat(id_: int, *events: Any) -> SpanSpec:
        attributes = {"gen_ai.operation.name": "chat", "events": compact(list(events))}
        return SpanSpec(id=id_, scope="pydantic-ai", start=id_, end=id_, attributes=attributes)

    words = "timed out\n\nFix the errors and try again."
    asked = {"event.name": "gen_ai.user.message", **USER}
    told = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": words}
    said = {"event.name": "gen_ai.choice", "message": SAID}
    trace = trace_of(
        chat(1, asked, {"event.name": "gen_ai.choice", "message": ASKED}),
        chat(2, asked, {"event.name": "gen_ai.assistant.message", **ASKED}, told, said),
    )

    assert one_call(trace).error == words

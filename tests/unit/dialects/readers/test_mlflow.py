"""MLflow, 2 and 3, and the frameworks whose methods it traces."""

from typing import Any

from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import ASKED, CALL, assert_whole
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
from tests.support.whole_traces import HISTORY, OPENAI_TOOL, PROMPT, assert_whole_turn


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
    trace = trace_of({NAME: "Tool.get_weather", **own, **said})

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
    returned = part("tool-return", tool_name="get_weather", content=RESULT, tool_call_id="c1")
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

    messages = [asked, requested, {"kind": "request", "parts": [returned]}]
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


def test_a_whole_trace_of_mlflow() -> None:
    def call(messages: Any, message: Any, given: int, came: int) -> dict[str, Any]:
        return {
            "mlflow.spanType": dump("CHAT_MODEL"),
            "mlflow.spanInputs": dump({"messages": messages, "tools": [OPENAI_TOOL]}),
            "mlflow.spanOutputs": dump({"choices": [{"message": message}]}),
            "mlflow.chat.tokenUsage": dump({"input_tokens": given, "output_tokens": came}),
        }

    asked = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert_whole_turn(
        scope="mlflow.tracing.provider",
        root={"mlflow.spanType": dump("AGENT"), "mlflow.spanInputs": dump({"question": QUESTION})},
        first=call(PROMPT, asked, 100, 10),
        tool={
            "mlflow.spanType": dump("TOOL"),
            "mlflow.spanInputs": dump(ARGUMENTS),
            "mlflow.spanOutputs": dump(RESULT),
        },
        last=call(HISTORY, {"role": "assistant", "content": ANSWER}, 150, 20),
    )

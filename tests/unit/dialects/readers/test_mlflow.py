"""MLflow, 2 and 3, and the frameworks whose methods it traces."""

from typing import Any

from tests.support.dialect_spans import NAME, SpanSpec, span_id, trace_of
from tests.support.openai_messages import assert_whole
from tests.support.weather import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RESULT,
    SAID,
    USER,
    compact,
    one_call,
)

SCOPE = "mlflow.tracing.provider"


def mlflow(kind: str, given: Any = None, came: Any = None, **more: Any) -> dict[str, Any]:
    """The attributes of a span, as JSON; its inputs and outputs where it has them."""
    sides = {"spanInputs": given, "spanOutputs": came}
    own = {"spanType": kind} | {key: side for key, side in sides.items() if side is not None}
    values = {f"mlflow.{key}": compact(value) for key, value in own.items()}
    return values | {key: compact(value) for key, value in more.items()}


def chosen(message: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message}], **more}


AGENT = mlflow("AGENT", {"question": QUESTION})
MESSAGES = {"messages": [USER]}


def test_mlflow_2_tokens_are_those_of_the_answer_or_of_its_last_chunk() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    value = compact({"choices": [], "usage": usage})
    chunk = ("mlflow.chunk.item.3", {"mlflow.chunk.value": value})
    trace = trace_of(
        AGENT,
        mlflow("CHAT_MODEL", MESSAGES, chosen(SAID, usage=usage)),
        SpanSpec(attributes=mlflow("CHAT_MODEL", MESSAGES), events=[chunk]),
        scope=SCOPE,
    )

    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_a_dspy_tool_under_mlflow_says_its_name_and_parameters_apart() -> None:
    own = mlflow("TOOL", ARGUMENTS, name="get_weather", description="Weather.", args={})
    trace = trace_of({NAME: "Tool.get_weather", **own})

    assert one_call(trace).name == "get_weather"
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]


def test_an_mlflow_agent_that_says_only_its_outputs_type_has_no_answer() -> None:
    silent = {**mlflow("AGENT", None, {"output_type": "str"}), "mlflow.spanInputs": "null"}
    trace = trace_of(silent, mlflow("CHAT_MODEL", [USER], chosen(SAID)), scope=SCOPE)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_pydantic_ai_under_mlflow_has_spans_named_for_its_methods() -> None:
    def message(kind: str, part: str, **more: Any) -> dict[str, Any]:
        return {"kind": kind, "parts": [{"part_kind": part, **more}]}

    def span(title: str, given: Any, came: Any, **more: Any) -> dict[str, Any]:
        return {NAME: title, **mlflow("UNKNOWN", given, came, **more)}

    of = {"tool_name": "get_weather", "tool_call_id": "c1"}
    asked = message("request", "user-prompt", content=QUESTION)
    requested = message("response", "tool-call", args=compact(ARGUMENTS), **of)
    returned = message("request", "tool-return", content=RESULT, **of)
    answered = message("response", "text", content=ANSWER)
    usage = {"mlflow.chat.tokenUsage": {"input_tokens": 7, "output_tokens": 2}}
    method = "InstrumentedModel.request"
    trace = trace_of(
        span("Agent.run", {"user_prompt": QUESTION}, {"output": ANSWER}, name="helper"),
        span(method, {"messages": [asked]}, requested, **usage),
        span("ToolManager.handle_call", {"call": requested["parts"][0]}, RESULT),
        span(method, {"messages": [asked, requested, returned]}, answered, **usage),
    )

    assert_whole(trace)
    assert (trace.agents, trace.tokens.input) == (("helper",), 14)
    assert (one_call(trace).id, one_call(trace).span_id) == ("c1", span_id(3))

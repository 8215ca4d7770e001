"""openlit, whose messages were one text."""

from typing import Any

from tests.support.conventions import CHAT, ROOT, asks, tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.table import for_each
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, one_call

TRACING = "openlit.otel.tracing"
PROMPT = f"system: Be brief.\nOr try.\nuser: {QUESTION}"


def function(name: str, attributes: dict[str, Any], **more: Any) -> SpanSpec:
    return SpanSpec(name=name, scope="openlit", attributes=attributes, **more)


def lines(prompt: str, said: str, **attributes: Any) -> SpanSpec:
    events = [
        ("gen_ai.content.prompt", {"gen_ai.prompt": prompt}),
        ("gen_ai.content.completion", {"gen_ai.completion": said}),
    ]
    return SpanSpec(name="chat", scope=TRACING, events=events, attributes=CHAT | attributes)


GIVEN = {"function.kwargs": str(ARGUMENTS), "gen_ai.completion": RESULT}
WEATHER = function("get_weather", GIVEN)


def test_a_traced_function_whose_result_was_sent_to_a_model_is_a_tool() -> None:
    trace = trace_of(
        function("answer", {"function.args": f"({QUESTION!r},)"}),
        lines(PROMPT, "Function called with tools"),
        WEATHER,
        function("log", {"gen_ai.completion": "logged"}),
        lines(f"{PROMPT}\ntool: {RESULT}", ANSWER),
    )

    call = one_call(trace)
    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)
    assert trace.input == QUESTION


def test_a_traced_function_inside_a_tools_span_is_that_call() -> None:
    asked = {**CHAT, "gen_ai.output.messages": asks("c1")}
    inner = function("get_weather", GIVEN, parent=3, start=3, end=4)

    trace = trace_of(ROOT, asked, {NAME: "execute_tool get_weather", **tool()}, inner)

    assert one_call(trace).id == "c1"


@for_each(
    "text,result,call_id,error",
    [
        (
            "content='status: unknown' name='get_weather' tool_call_id='c1'",
            "status: unknown",
            "c1",
            None,
        ),
        (
            "content='Error: timed out' name='f' tool_call_id='c1' status='error'",
            "Error: timed out",
            "c1",
            "Error: timed out",
        ),
        ("content='mine'", "content='mine'", None, None),  # a result that only looks so
    ],
)
def test_a_tool_message_shown_as_text_is_its_content_and_its_status(
    text: str, result: str, call_id: str | None, error: str | None
) -> None:
    shown = {NAME: "execute_tool", **tool(result=text)}

    call = one_call(trace_of(shown, scope="openlit.otel.langchain"))

    assert (call.result, call.id, call.error) == (result, call_id, error)

"""openlit, whose messages were one text."""

from typing import Any

from tests.support.conventions import ROOT, asks, chat
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump, one_call


def function(span: int, name: str, **more: Any) -> SpanSpec:
    return SpanSpec(id=span, name=name, scope="openlit", **more)


def lines(span: int, start: int, end: int, prompt: str, said: str, **attributes: Any) -> SpanSpec:
    events = [
        ("gen_ai.content.prompt", {"gen_ai.prompt": prompt}),
        ("gen_ai.content.completion", {"gen_ai.completion": said}),
    ]
    given = {key.replace("__", "."): value for key, value in attributes.items()}
    return chat(span, start, end, scope="openlit.otel.tracing", events=events, attributes=given)


PROMPT = f"system: Be brief.\nOr try.\nuser: {QUESTION}"


GIVEN = {"function.kwargs": str(ARGUMENTS), "gen_ai.completion": RESULT}


def test_openlit_wrote_messages_as_lines_and_the_calls_beside_them() -> None:
    calls = str([{"id": "c1", "function": {"name": "get_weather", "arguments": dump(ARGUMENTS)}}])
    trace = trace_of(
        ROOT,
        lines(2, 1, 2, PROMPT, "None", gen_ai__response__tool_calls=calls),
        function(3, "get_weather", parent=1, start=3, end=4, attributes=GIVEN),
        lines(4, 5, 6, f"{PROMPT}\nassistant: None\ntool: {RESULT}", ANSWER),
    )

    assert (trace.input, trace.output, trace.system) == (QUESTION, ANSWER, "Be brief.\nOr try.")
    call = one_call(trace)
    assert (call.id, call.arguments, call.result) == ("c1", ARGUMENTS, RESULT)
    assert call.span_id is not None


def test_several_calls_in_one_text() -> None:
    trace = trace_of(
        chat(
            2,
            1,
            2,
            scope="openlit.otel.tracing",
            attributes={
                "gen_ai.tool.name": "f, g",
                "gen_ai.tool.call.id": "c1, c2",
                "gen_ai.tool.args": '{"a": 1}, {"b": 2}',
            },
        )
    )

    found = [(call.id, call.name, call.arguments) for call in trace.tool_calls]
    assert found == [("c1", "f", {"a": 1}), ("c2", "g", {"b": 2})]


def test_a_traced_function_whose_result_was_sent_to_a_model_is_a_tool() -> None:
    trace = trace_of(
        function(1, "answer", attributes={"function.args": f"({QUESTION!r},)"}, end=9),
        lines(2, 1, 2, PROMPT, "Function called with tools"),
        function(3, "get_weather", parent=1, start=3, end=4, attributes=GIVEN),
        function(4, "log", parent=1, start=3, end=4, attributes={"gen_ai.completion": "logged"}),
        lines(5, 5, 6, f"{PROMPT}\ntool: {RESULT}", ANSWER),
    )

    call = one_call(trace)
    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)
    assert trace.input == QUESTION


def test_a_traced_function_inside_a_tools_span_is_that_call() -> None:
    tool = {
        NAME: "execute_tool get_weather",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
    }
    inner = function(4, "get_weather", parent=3, start=4, end=5, attributes=GIVEN)
    asked = chat(2, 1, 2, attributes={"gen_ai.output.messages": asks("c1")})

    assert one_call(trace_of(ROOT, asked, tool, inner)).id == "c1"


def shown_result(text: str, **more: Any) -> SpanSpec:
    given = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
    given |= {"gen_ai.tool.call.result": text, **more}
    return SpanSpec(
        id=3, name="execute_tool", scope="openlit.otel.langchain", attributes=given, end=9
    )


def test_a_tool_message_shown_as_text_is_its_content() -> None:
    shown = shown_result("content='status: unknown' name='get_weather' tool_call_id='c1'")
    call = one_call(trace_of(shown))
    assert (call.result, call.id, call.error) == ("status: unknown", "c1", None)


def test_a_tool_message_with_an_error_status_failed() -> None:
    text = "content='Error: timed out' name='f' tool_call_id='c1' status='error'"
    assert one_call(trace_of(shown_result(text))).error == "Error: timed out"


def test_a_result_that_only_looks_so_stays() -> None:
    assert one_call(trace_of(shown_result("content='mine'"))).result == "content='mine'"

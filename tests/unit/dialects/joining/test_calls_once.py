"""A call counts once and is one that was made: tried again, recorded twice, summed up, or shown as Python shows it."""

from typing import Any

import pytest

from evaluators.model import ToolCall
from tests.support.conventions import AGENT, CHAT, ROOT, asked, asks, chat, said, says, tool
from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import ARGUMENTS, dump

FUNCTION = "arguments='{\"city\": \"Paris\"}', name='get_weather'"
CALL = f"{FUNCTION}, call_id='c1'"
ITEM = {
    "type": "function_call",
    "call_id": "c1",
    "name": "get_weather",
    "arguments": '{"city": "Paris"}',
}
OWN = '{"call_id": "c1", "name": "Ann"}'
CALLED = {
    "gen_ai.tool.call.id": "c1",
    "gen_ai.tool.call.arguments": dump(ARGUMENTS),
}


def tried(span: int, start: int, end: int, **more: Any) -> SpanSpec:
    attributes = {**tool("get_weather"), **CALLED, **more}
    return SpanSpec(id=span, parent=1, name="tool", attributes=attributes, start=start, end=end)


def test_a_call_that_a_gateway_tried_again_ended_as_the_last_try_did() -> None:
    failed = {"error.type": "TimeoutError"}
    good = {"gen_ai.tool.call.result": "rainy"}

    for first, last, error in ((failed, good, None), (good, failed, "TimeoutError")):
        calls = trace_of(ROOT, tried(2, 1, 2, **first), tried(3, 3, 4, **last)).tool_calls
        assert [(call.id, call.error) for call in calls] == [("c1", error)]


def test_a_plug_in_that_records_a_call_once_more_changes_nothing_of_it() -> None:
    calls = trace_of(
        ROOT, tried(2, 1, 4, **{"gen_ai.tool.call.result": "rainy"}), tried(3, 5, 6)
    ).tool_calls

    assert [(call.id, call.result, call.span_id) for call in calls] == [
        ("c1", "rainy", calls[0].span_id)
    ]


def test_ids_that_every_answer_has_or_other_arguments_are_of_several_calls() -> None:
    answers = {"gen_ai.output.messages": asks("c1")}
    chats = (chat(5, 0, 1, attributes=answers), chat(6, 3, 4, attributes=answers))
    other = {"gen_ai.tool.call.arguments": '{"city": "Rome"}'}

    assert len(trace_of(ROOT, *chats, tried(2, 1, 2), tried(3, 4, 5)).tool_calls) == 2
    assert len(trace_of(ROOT, tried(2, 1, 2), tried(3, 3, 4, **other)).tool_calls) == 2


@pytest.mark.parametrize("name", ["execute_tool (merged)", "execute_tool get_weather"])
def test_adks_span_around_parallel_calls_is_not_a_call(name: str) -> None:
    attributes = {"openinference.span.kind": "TOOL", "output.value": "{}"}

    calls = trace_of(ROOT, SpanSpec(id=2, parent=1, name=name, attributes=attributes)).tool_calls
    assert [call.name for call in calls] == ([] if "(merged)" in name else ["get_weather"])


@pytest.mark.parametrize(
    "shown",
    [
        f"ResponseFunctionToolCall({CALL}, type='function_call', id='fc_1', status='completed')",
        f"[ResponseFunctionToolCall({CALL}, type='function_call')]",
        CALL.replace(", ", " ") + " type='function_call' id='fc_1'",
        f"ChatCompletionMessageToolCall(id='c1', function=Function({FUNCTION}), type='function')",
        "ToolUseBlock(id='c1', input={'city': 'Paris'}, name='get_weather', type='tool_use')",
        "FunctionCall(id='c1', args={'city': 'Paris'}, name='get_weather')",
        dump(ITEM),
        str(ITEM),
        f"ChatCompletionMessage(content=None, role='assistant', tool_calls=[Function({FUNCTION}, id='c1')])",
    ],
)
def test_a_call_shown_by_python_is_a_call_and_not_the_answer(shown: str) -> None:
    for answer in (says(shown), dump([{"role": "assistant", "content": shown}])):
        trace = trace_of(
            SpanSpec(id=1, name="agent", attributes=AGENT, end=9),
            chat(2, 1, 2, attributes={"gen_ai.output.messages": answer}),
        )
        assert trace.output is None
        assert [(c.name, c.id, c.arguments) for c in trace.tool_calls] == [
            ("get_weather", "c1", {"city": "Paris"})
        ]


@pytest.mark.parametrize(
    "text",
    ["Call f(x=1)", "a='call_id' b='x'", "Order(id=3, name='x')", "Order(id=3, type='x')", OWN],
)
def test_an_answer_that_looks_a_little_like_one_stays_the_answer(text: str) -> None:
    said_so = {"gen_ai.output.messages": says(text), "gen_ai.input.messages": asked("What?")}

    assert trace_of(ROOT, chat(2, 1, 2, attributes=said_so)).output == text


@pytest.mark.parametrize(
    ("scope", "result"),
    [
        ("opentelemetry.instrumentation.crewai", "Error executing tool: no answer"),
        ("openinference.instrumentation.crewai", "Error executing tool: no answer"),
        (
            "opentelemetry.instrumentation.openai_agents",
            "An error occurred while running the tool. Please try again. Error: no answer",
        ),
        ("openinference.instrumentation.smolagents", "Error:\nno answer\nNow let's retry"),
        ("openinference.instrumentation.smolagents", "Call id: c1\nError:\nno answer"),
    ],
)
def test_words_tell_a_failure_only_of_a_framework_that_writes_them(scope: str, result: str) -> None:
    assert told(scope, result).failed
    assert not told("agent", result).failed


@pytest.mark.parametrize("text", ["Observation:\n12", "Call id: c1\nObservation:\n12"])
def test_what_smolagents_tells_a_model_is_the_result_without_its_heading(text: str) -> None:
    assert told("openinference.instrumentation.smolagents", text).result == "12"
    assert told("agent", "Observation:\n12").result == "Observation:\n12"


def told(scope: str, result: str) -> ToolCall:
    """The only call of a trace with a span of `scope`, whose result stands in what a model was told."""
    history = [
        {"role": "user", "content": "What?"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "count"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]
    first = said("", {"type": "tool_call", "id": "c1", "name": "count"})
    later = {"gen_ai.input.messages": dump(history), "gen_ai.output.messages": says("Sorry.")}
    trace = trace_of(
        SpanSpec(id=1, name="agent", attributes=AGENT, end=9, scope=scope),
        chat(2, 1, 2, attributes={**CHAT, "gen_ai.output.messages": first}),
        chat(3, 3, 4, attributes={**CHAT, **later}),
    )
    (call,) = trace.tool_calls
    return call


@pytest.mark.parametrize(
    "marks",
    [
        {"openinference.span.kind": "TOOL", "tool.name": "get_weather"},
        {"traceloop.span.kind": "tool", "traceloop.entity.name": "get_weather"},
        {"langfuse.observation.type": "tool", "langfuse.observation.output": "rainy"},
        {"mlflow.spanType": '"TOOL"', "mlflow.spanOutputs": '"rainy"'},
        {"langwatch.span.type": "tool", "langwatch.output": '{"type": "text", "value": "rainy"}'},
    ],
)
def test_the_conventions_id_makes_one_call_of_two_spans_in_every_dialect(marks: Any) -> None:
    attributes = {**marks, "gen_ai.tool.call.id": "c1"}
    spans = [
        SpanSpec(id=n, parent=1, name="get_weather", attributes=attributes, start=n, end=n + 1)
        for n in (2, 4)
    ]
    with_arguments = {**attributes, **CALLED}

    one = trace_of(ROOT, SpanSpec(id=9, parent=1, attributes=with_arguments), *spans[1:])
    assert [call.id for call in one.tool_calls] == ["c1"]

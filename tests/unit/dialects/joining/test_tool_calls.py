"""Spans and messages joined to tool calls, each once, and only those that were made."""

import json
from typing import Any

from evaluators.model import ToolCall
from tests.support.conventions import (
    AGENT,
    ROOT,
    asked,
    asks,
    call,
    made,
    model,
    raised,
    ran,
    said,
    says,
    tool,
)
from tests.support.dialect_spans import SpanSpec, span_id, trace_of
from tests.support.openinference import flat, of
from tests.support.table import for_each
from tests.support.weather import ARGUMENTS, dump, one_call


def asking(*calls: dict[str, Any], number: int = 1) -> SpanSpec:
    return model(number, parent=0, answer=said("", *calls))


def calls_of(*spans: SpanSpec) -> list[tuple[str, Any, Any]]:
    return [(c.name, c.arguments, c.result) for c in trace_of(*spans).tool_calls]


def names_of(*spans: SpanSpec) -> list[str]:
    return [name for name, _, _ in calls_of(*spans)]


def test_a_failed_tool_says_why() -> None:
    events = [raised("TimeoutError", "too slow")]
    trace = trace_of(
        ran(1, 0, "f", status=2, message="other", events=events),
        ran(2, 1, "g", status=2, message="why"),
        ran(3, 2, "h", status=2, attributes={"error.type": "TOOL_ERROR"}),
    )

    assert [c.error for c in trace.tool_calls] == ["too slow", "why", "TOOL_ERROR"]


def test_an_id_that_is_no_text_is_none() -> None:
    told = {"role": "tool", "content": "x"}
    request = json.dumps({"messages": [{**told, "tool_call_id": "c", "is_error": True}]})
    sent = flat("input", {**told, "tool_call_id": ["c"]})
    message = ("gen_ai.tool.message", {"content": "{}", "id": ["c"]})

    trace = trace_of(
        of("LLM", input__value=request) | sent, SpanSpec(attributes=tool("f"), events=[message])
    )

    assert [(call.name, call.id) for call in trace.tool_calls] == [("f", None)]


def test_a_hand_over_to_an_agent_of_the_trace_is_no_tool_call_but_a_tool_named_so_is() -> None:
    requested = asking(call("transfer_to_refund_agent", "c1"), call("transfer_to_human", "c2"))
    expert = SpanSpec(id=2, attributes={**AGENT, "gen_ai.agent.name": "Refund Agent"}, start=1)

    assert names_of(requested, expert) == ["transfer_to_human"]


def test_a_tool_span_inside_the_same_tools_span_is_the_same_call() -> None:
    outer, inner = ran(1, 0, "f", "c1", parent=0, end=9), ran(2, 1, "f", result="ok", end=8)

    assert calls_of(outer, inner) == [("f", None, "ok")]


def test_a_plain_span_named_after_a_requested_tool_is_its_execution() -> None:
    running = SpanSpec(id=2, name="running f", start=2, status=2, message="broke")

    (only,) = trace_of(asking(call("f", "c1")), running).tool_calls
    assert (only.span_id, only.error) == (span_id(2), "broke")


def beside(scope: str, id_: int, start: int, end: int, call_id: str | None = None) -> SpanSpec:
    return ran(id_, start, "f", call_id, scope=scope, end=end, arguments='{"a": 1}', result="ok")


WITHIN = SpanSpec(id=1, end=99)


@for_each(
    "one,other,count",
    [
        (beside("x", 2, 1, 9, "c1"), beside("y", 3, 2, 8, "c1"), 1),  # by id
        (beside("x", 2, 1, 9), beside("y", 3, 2, 8), 1),  # by arguments
        (beside("x", 2, 1, 9), beside("x", 3, 2, 8), 2),  # one instrumentation
        (beside("x", 2, 1, 9), beside("y", 3, 10, 12), 2),  # one after the other
        (beside("x", 2, 1, 9, "c1"), beside("y", 3, 2, 8, "c2"), 2),
    ],
)
def test_a_call_that_two_instrumentations_recorded_side_by_side_is_one(
    one: SpanSpec, other: SpanSpec, count: int
) -> None:
    assert calls_of(WITHIN, one, other) == [("f", {"a": 1}, "ok")] * count


# --- tried again, recorded twice, summed up, or shown as Python shows it ---------------------------------------------


FUNCTION = "arguments='{\"city\": \"Paris\"}', name='get_weather'"
SHOWN = f"{FUNCTION}, call_id='c1'"
NAMED = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
ITEM = {"type": "function_call", "call_id": "c1", **NAMED}
OWN = '{"call_id": "c1", "name": "Ann"}'
SMOLAGENTS = "openinference.instrumentation.smolagents"


def tried(span: int, start: int, end: int, city: str = "Paris", **more: Any) -> SpanSpec:
    arguments = dump({"city": city})
    return ran(span, start, "get_weather", "c1", end=end, arguments=arguments, **more)


def test_a_call_that_a_gateway_tried_again_ended_as_the_last_try_did() -> None:
    failed: dict[str, Any] = {"attributes": {"error.type": "TimeoutError"}}
    good: dict[str, Any] = {"result": "rainy"}

    for first, last, error in ((failed, good, None), (good, failed, "TimeoutError")):
        (call,) = trace_of(ROOT, tried(2, 1, 2, **first), tried(3, 3, 4, **last)).tool_calls
        assert (call.id, call.error) == ("c1", error)


def test_a_plug_in_that_records_a_call_once_more_changes_nothing_of_it() -> None:
    (call,) = trace_of(ROOT, tried(2, 1, 4, result="rainy"), tried(3, 5, 6)).tool_calls

    assert (call.id, call.result, call.span_id) == ("c1", "rainy", span_id(2))


def test_ids_that_every_answer_has_or_other_arguments_are_of_several_calls() -> None:
    chats = model(5, 0, answer=asks("c1")), model(6, 3, answer=asks("c1"))

    assert len(trace_of(ROOT, *chats, tried(2, 1, 2), tried(3, 4, 5)).tool_calls) == 2
    assert len(trace_of(ROOT, tried(2, 1, 2), tried(3, 3, 4, "Rome")).tool_calls) == 2


def test_adks_span_around_parallel_calls_is_not_a_call() -> None:
    attributes = {"openinference.span.kind": "TOOL", "output.value": "{}"}

    for name, calls in (("(merged)", []), ("get_weather", ["get_weather"])):
        trace = trace_of(ROOT, made(2, 0, attributes, name=f"execute_tool {name}"))
        assert [call.name for call in trace.tool_calls] == calls


@for_each(
    "shown",
    [
        f"ResponseFunctionToolCall({SHOWN}, type='function_call', id='fc_1', status='completed')",
        f"[ResponseFunctionToolCall({SHOWN}, type='function_call')]",
        SHOWN.replace(", ", " ") + " type='function_call' id='fc_1'",
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
        trace = trace_of(SpanSpec(id=1, attributes=AGENT, end=9), model(2, 1, answer=answer))
        (call,) = trace.tool_calls
        assert trace.output is None
        assert (call.name, call.id, call.arguments) == ("get_weather", "c1", {"city": "Paris"})


@for_each(
    "text",
    ["Call f(x=1)", "a='call_id' b='x'", "Order(id=3, name='x')", "Order(id=3, type='x')", OWN],
)
def test_an_answer_that_looks_a_little_like_one_stays_the_answer(text: str) -> None:
    assert trace_of(ROOT, model(2, 1, asked("What?"), says(text))).output == text


CREW = "Error executing tool: no answer"
AGENTS_SDK = "An error occurred while running the tool. Please try again. Error: no answer"


@for_each(
    "scope,result",
    [
        ("opentelemetry.instrumentation.crewai", CREW),
        ("openinference.instrumentation.crewai", CREW),
        ("opentelemetry.instrumentation.openai_agents", AGENTS_SDK),
        (SMOLAGENTS, "Error:\nno answer\nNow let's retry"),
        (SMOLAGENTS, "Call id: c1\nError:\nno answer"),
    ],
)
def test_words_tell_a_failure_only_of_a_framework_that_writes_them(scope: str, result: str) -> None:
    assert told(scope, result).failed
    assert not told("agent", result).failed


def test_what_smolagents_tells_a_model_is_the_result_without_its_heading() -> None:
    for text in ("Observation:\n12", "Call id: c1\nObservation:\n12"):
        assert told(SMOLAGENTS, text).result == "12"
    assert told("agent", "Observation:\n12").result == "Observation:\n12"


def told(scope: str, result: str) -> ToolCall:
    """The only call of a trace with a span of `scope`, whose result stands in what a model was told."""
    history = [
        {"role": "user", "content": "What?"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "count"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]
    first = said("", {"type": "tool_call", "id": "c1", "name": "count"})
    return one_call(
        trace_of(
            SpanSpec(id=1, name="agent", attributes=AGENT, end=9, scope=scope),
            model(2, 1, answer=first),
            model(3, 3, dump(history), says("Sorry.")),
        )
    )


@for_each(
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
    again = made(4, 4, {**marks, "gen_ai.tool.call.id": "c1"}, name="get_weather")
    called = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": dump(ARGUMENTS)}
    first = SpanSpec(id=9, parent=1, attributes={**marks, **called})

    assert [call.id for call in trace_of(ROOT, first, again).tool_calls] == ["c1"]

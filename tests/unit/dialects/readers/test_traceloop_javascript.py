"""OpenLLMetry for JS: LangChain's graphs, whose tools are named by their class."""

from dataclasses import replace
from typing import Any

from tests.support.conventions import CHAT, says
from tests.support.dialect_spans import SpanSpec, changed, trace_of, under
from tests.support.table import for_each
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, USER, compact, one_call

FAILURE = "Error: timed out\n Please fix your mistakes."
GRAPHS = "@traceloop/instrumentation-langchain"


def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", kind], "kwargs": kwargs}


CALL = {"name": "get_weather", "args": ARGUMENTS, "type": "tool_call", "id": "c1"}
TOLD = lc("ToolMessage", content=RESULT, tool_call_id="c1", name="get_weather", status="success")
STATE = [
    lc("HumanMessage", content=QUESTION),
    lc("AIMessage", content="", tool_calls=[CALL]),
    TOLD,
    lc("AIMessage", content=ANSWER),
]


def entity(operation: str, kind: str, name: str, **sides: Any) -> dict[str, Any]:
    said = under("traceloop.entity.", name=name, **{k: compact(v) for k, v in sides.items()})
    return {"gen_ai.operation.name": operation, "traceloop.span.kind": kind, **said}


def graph(messages: list[Any]) -> SpanSpec:
    name = "CompiledStateGraph"
    sides = {"input": {"messages": [USER]}, "output": {"messages": messages}}
    attributes = {
        "traceloop.workflow.name": name,
        **entity("workflow", "workflow", name, **sides),
    }
    return SpanSpec(name=f"workflow {name}", attributes=attributes, start=1, end=90)


def tool_by_class(status: int = 0, **output: Any) -> SpanSpec:
    name = "DynamicStructuredTool"
    given = {"args": [compact(ARGUMENTS)]}
    attributes = entity("execute_tool", "task", name, input=given, **output)
    message = "timed out" if status else ""
    return SpanSpec(
        name=f"execute_tool {name}", attributes=attributes, status=status, message=message
    )


SILENT = SpanSpec(
    attributes={
        **CHAT,
        "gen_ai.output.messages": says(""),
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 3,
    }
)
FAILED = tool_by_class(2)
ASKED = {**CHAT, "gen_ai.output.messages": compact([{"role": "assistant", "tool_calls": [CALL]}])}


@for_each(
    "spans,error",
    [
        ([SILENT, tool_by_class(output=TOLD)], None),  # its result names it
        ([graph(STATE[:2]), SILENT, FAILED], "timed out"),  # the graph's state does
        ([ASKED, FAILED], "timed out"),  # the model's answer does
        ([graph(STATE), SILENT], None),  # and so do calls that only the graph's state tells
    ],
)
def test_a_tool_named_by_its_class_learns_its_name_and_is_found_once(
    spans: list[Any], error: str | None
) -> None:
    call = one_call(trace_of({}, *spans, scope=GRAPHS))

    assert (call.name, call.id, call.arguments) == ("get_weather", "c1", ARGUMENTS)
    assert (call.result, call.error) == (None if error else RESULT, error)


def test_a_former_turns_calls_in_a_graphs_state_do_not_count() -> None:
    later = [*STATE, lc("HumanMessage", content="And now?"), lc("AIMessage", content="Still.")]

    assert trace_of({}, graph(later), SILENT, scope=GRAPHS).tool_calls == ()


def test_a_graphs_state_is_not_asked_where_the_models_answers_say_their_calls() -> None:
    spoken = [{"role": "assistant", "content": ANSWER}]
    model = {**CHAT, "gen_ai.output.messages": compact(spoken)}

    assert trace_of({}, graph(STATE), model, scope=GRAPHS).tool_calls == ()


def test_a_call_that_two_instrumentations_record_beside_each_other_is_one() -> None:
    silent = replace(SILENT, scope=GRAPHS, start=10, end=20)
    named = changed(silent, gen_ai__response__id="r1")
    inner = replace(named, scope="@traceloop/instrumentation-openai", start=11, end=21)
    other = replace(named, start=50, end=60)
    apart = replace(silent, scope="x", start=50, end=60)

    assert trace_of({}, silent, inner).tokens.input == 5
    assert len(trace_of({}, silent, inner, other).model_calls) == 1
    assert len(trace_of({}, silent, inner, apart).model_calls) == 2


def test_a_users_text_that_is_the_whole_list_of_messages_is_read_as_such() -> None:
    call = {"call_id": "c1", "name": "get_weather", "arguments": compact(ARGUMENTS)}
    items = [
        USER,
        {"type": "function_call", **call},
        {"type": "function_call_output", "call_id": "c1", "output": FAILURE},
    ]
    sent = compact([{"role": "user", "parts": [{"type": "text", "content": compact(items)}]}])

    trace = trace_of({}, SILENT, changed(SILENT, gen_ai__input__messages=sent))

    assert trace.input == QUESTION
    found = one_call(trace)
    assert (found.name, found.arguments, found.error) == ("get_weather", ARGUMENTS, FAILURE)


def test_a_graphs_state_is_the_first_of_two_arguments() -> None:
    def step(kind: str, **given: Any) -> dict[str, Any]:
        return {"traceloop.span.kind": kind, "traceloop.entity.input": compact(given)}

    state = {"messages": [lc("HumanMessage", content=QUESTION)]}
    trace = trace_of(step("workflow", args=[], kwargs={}), step("task", args=[state, {"x": 1}]))

    assert trace.input == QUESTION

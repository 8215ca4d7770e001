"""OpenLLMetry for JS: LangChain's graphs, whose tools are named by their class."""

from typing import Any

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact

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


def graph(messages: list[Any]) -> SpanSpec:
    return SpanSpec(
        id=2,
        parent=1,
        name="workflow CompiledStateGraph",
        scope=GRAPHS,
        attributes={
            "traceloop.span.kind": "workflow",
            "traceloop.workflow.name": "CompiledStateGraph",
            "traceloop.entity.name": "CompiledStateGraph",
            "gen_ai.operation.name": "workflow",
            "traceloop.entity.input": compact(
                {"messages": [{"role": "user", "content": QUESTION}]}
            ),
            "traceloop.entity.output": compact({"messages": messages}),
        },
        start=1,
        end=90,
    )


def silent_call(**more: Any) -> SpanSpec:
    said = [{"role": "assistant", "parts": [{"type": "text", "content": ""}]}]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": compact(said),
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 3,
    }
    return SpanSpec(id=3, parent=1, scope=GRAPHS, attributes=attributes, start=10, end=20, **more)


def tool_by_class(**more: Any) -> SpanSpec:
    return SpanSpec(
        id=4,
        parent=1,
        name="execute_tool DynamicStructuredTool",
        scope=GRAPHS,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "traceloop.span.kind": "task",
            "traceloop.entity.name": "DynamicStructuredTool",
            "traceloop.entity.input": compact({"args": [compact(ARGUMENTS)]}),
            **more.pop("attributes", {}),
        },
        start=30,
        end=40,
        **more,
    )


def test_a_tool_named_by_its_class_learns_its_name_from_its_result() -> None:
    answered = tool_by_class(attributes={"traceloop.entity.output": compact(TOLD)})

    (call,) = trace_of({}, silent_call(), answered).tool_calls

    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def test_a_failed_tool_named_by_its_class_learns_its_name_from_the_graphs_state() -> None:
    failed = tool_by_class(status=2, message="timed out")

    trace = trace_of({}, graph(STATE[:2]), silent_call(), failed)

    (call,) = trace.tool_calls
    assert (call.name, call.id, call.error) == ("get_weather", "c1", "timed out")


def test_a_failed_tool_named_by_its_class_learns_its_name_from_the_models_answer() -> None:
    asked = compact([{"role": "assistant", "tool_calls": [CALL]}])
    model = SpanSpec(
        id=3,
        parent=1,
        attributes={"gen_ai.operation.name": "chat", "gen_ai.output.messages": asked},
        start=10,
        end=20,
    )

    trace = trace_of({}, model, tool_by_class(status=2, message="timed out"))

    assert [(call.name, call.error) for call in trace.tool_calls] == [("get_weather", "timed out")]


def test_calls_that_only_a_graphs_state_tells_are_found_once() -> None:
    trace = trace_of({}, graph(STATE), silent_call())

    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def test_a_former_turns_calls_in_a_graphs_state_do_not_count() -> None:
    later = [*STATE, lc("HumanMessage", content="And now?"), lc("AIMessage", content="Still.")]

    assert trace_of({}, graph(later), silent_call()).tool_calls == ()


def test_a_graphs_state_is_not_asked_where_the_models_answers_say_their_calls() -> None:
    spoken = [{"role": "assistant", "content": ANSWER}]
    model = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": compact(spoken)}

    assert trace_of({}, graph(STATE), model).tool_calls == ()


def test_a_call_that_two_instrumentations_record_beside_each_other_is_one() -> None:
    inner = SpanSpec(
        id=5,
        parent=1,
        scope="@traceloop/instrumentation-openai",
        attributes={**silent_call().attributes, "gen_ai.response.id": "r1"},
        start=11,
        end=21,
    )
    other = SpanSpec(id=6, parent=1, scope=GRAPHS, attributes=inner.attributes, start=50, end=60)

    assert trace_of({}, silent_call(), inner).tokens.input == 5
    assert len(trace_of({}, silent_call(), inner, other).model_calls) == 1
    apart = SpanSpec(
        id=7, parent=1, scope="x", attributes=silent_call().attributes, start=50, end=60
    )
    assert len(trace_of({}, silent_call(), inner, apart).model_calls) == 2


def test_a_users_text_that_is_the_whole_list_of_messages_is_read_as_such() -> None:
    items = [
        {"role": "user", "content": QUESTION},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "get_weather",
            "arguments": compact(ARGUMENTS),
        },
        {"type": "function_call_output", "call_id": "c1", "output": FAILURE},
    ]
    asked = [{"role": "user", "parts": [{"type": "text", "content": compact(items)}]}]
    hollow = silent_call()
    second = SpanSpec(
        id=5,
        parent=1,
        attributes={**hollow.attributes, "gen_ai.input.messages": compact(asked)},
        start=50,
        end=60,
    )

    trace = trace_of({}, hollow, second)

    assert trace.input == QUESTION
    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.error) == ("get_weather", ARGUMENTS, FAILURE)


def test_a_graphs_state_is_the_first_of_two_arguments() -> None:
    state = {"messages": [lc("HumanMessage", content=QUESTION)]}
    step = {
        "traceloop.span.kind": "task",
        "traceloop.entity.input": compact({"args": [state, {"x": 1}]}),
    }
    root = {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.input": compact({"args": [], "kwargs": {}}),
    }

    assert trace_of(root, step).input == QUESTION

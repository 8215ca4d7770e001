"""OpenLLMetry's entities, and the frameworks under them."""

from typing import Any

from evaluators.model import JSON, Trace
from tests.support.conventions import CHAT, ROOT, asks, says
from tests.support.dialect_spans import NAME, SpanSpec, changed, trace_of, under
from tests.support.table import for_each
from tests.support.weather import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RESULT,
    USER,
    compact,
    dump,
    one_call,
)

DECORATOR = "traceloop.tracer"


def entity(kind: str, name: str, given: Any = None, came: Any = None) -> dict[str, Any]:
    """The attributes of a span, with its name; its input and its output where it has them."""
    sides = {"traceloop.entity.input": given, "traceloop.entity.output": came}
    said = {key: dump(side) for key, side in sides.items() if side is not None}
    own = {"traceloop.span.kind": kind, "traceloop.entity.name": name}
    return {NAME: f"{name}.{kind}", **own, **said}


def offered(trace: Trace) -> list[str]:
    return [tool.name for tool in trace.tools_offered]


@for_each(
    "given",
    [
        {"messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]},
        {"functions": [{"name": "f", "parameters": {}}]},
        {"kwargs": {"tools": [{"name": "f", "input_schema": {}}]}},
        {"invocation_params": {"tools": dump([{"name": "f"}])}},
    ],
)
def test_tools_stand_beside_the_messages_of_a_models_step(given: JSON) -> None:
    step = {**entity("task", "OpenAI", given), "llm.request.type": "chat"}

    assert offered(trace_of(step)) == ["f"]


def test_an_agent_that_names_its_model_is_no_model_call() -> None:
    tools = dump([{"name": "f", "description": "d"}])
    models = {f"gen_ai.{side}.model": "gpt-4o-mini" for side in ("request", "response")}
    trace = trace_of({**entity("agent", "clerk"), **models, "crewai.agent.tools": tools})

    assert (trace.agent, trace.model_calls, offered(trace)) == ("clerk", (), ["f"])


# --- calls of tools --------------------------------------------------------------------------------------------------


ASKED = {**CHAT, "gen_ai.output.messages": asks("c1")}


def test_a_failed_call_without_a_span_is_not_its_repetition() -> None:
    failed = [{"type": "tool_result", "tool_use_id": "c1", "content": "too slow", "is_error": True}]
    sent = {"gen_ai.input.messages": dump([{"role": "user", "content": failed}])}
    trace = trace_of(
        ROOT,
        ASKED,
        {**CHAT, **sent, "gen_ai.output.messages": asks("c2")},
        entity("tool", "get_weather", {"args": [], "kwargs": ARGUMENTS}, RESULT),
    )

    first, second = trace.tool_calls
    assert (first.id, first.error, first.span_id) == ("c1", "too slow", None)
    assert (second.id, second.error, second.result) == ("c2", None, RESULT)


def test_a_tool_node_answers_for_the_span_of_a_tool_that_failed() -> None:
    told = {"content": "too slow", "type": "tool", "tool_call_id": "c1", "status": "error"}
    kind = ["langchain", "schema", "messages", "ToolMessage"]
    message = {"lc": 1, "type": "constructor", "id": kind, "kwargs": told}
    trace = trace_of(
        entity("task", "tools", came={"outputs": {"messages": [message]}}),
        entity("tool", "get_weather", {"inputs": ARGUMENTS, "input_str": ""}),
    )

    call = one_call(trace)
    assert (call.id, call.arguments, call.error) == ("c1", ARGUMENTS, "too slow")


@for_each(
    "shown,result,error",
    [
        ("status='success' result='rainy, 14 °C' error=None", RESULT, None),
        ("status='failure' result=None error=\"it's slow\"", "it's slow", "it's slow"),
    ],
)
def test_agno_shows_its_result_of_a_function(shown: str, result: str, error: str | None) -> None:
    output = {"traceloop.entity.output": f"{shown} updated_session_state=None images=None"}

    call = one_call(trace_of({**entity("tool", "f"), **output}))

    assert (call.result, call.error) == (result, error)


@for_each(
    "name,given",
    [
        ("BaseWorkflowAgent.task", {"tool.name": "get_weather", "tool.arguments": dump(ARGUMENTS)}),
        ("call_tool.task", {}),  # older
    ],
)
def test_the_workflow_step_of_llama_index_that_calls_a_tool(
    name: str, given: dict[str, Any]
) -> None:
    output = {
        "blocks": [{"block_type": "text", "text": "too slow"}],
        "tool_name": "get_weather",
        "raw_output": "too slow",
        "is_error": True,
    }
    came = {"tool_name": "get_weather", "tool_id": "c1", "tool_output": output}

    call = one_call(trace_of(ROOT, ASKED, {**entity("task", name, came=came), **given}))

    assert (call.name, call.id, call.arguments) == ("get_weather", "c1", ARGUMENTS)
    assert call.error == "too slow"


def test_a_tool_under_the_task_decorator() -> None:
    own = {"traceloop.span.kind": "task", "traceloop.entity.name": "get_weather"}
    failed = SpanSpec(attributes=own, status=2, message="too slow")

    call = one_call(trace_of(ROOT, ASKED, failed, scope=DECORATOR))

    assert (call.id, call.arguments, call.error) == ("c1", ARGUMENTS, "too slow")


def test_a_task_that_no_model_asked_for_is_no_tool() -> None:
    done = entity("task", "clean", came="done")

    assert trace_of(ROOT, done, scope=DECORATOR).tool_calls == ()


@for_each("failed", [False, True])
def test_a_traceloop_mcp_call_is_its_arguments_and_its_text(failed: bool) -> None:
    output = {"result": RESULT, **({"is_error": True} if failed else {})}
    given = {"tool_name": "get_weather", "arguments": ARGUMENTS}
    tool = entity("tool", "get_weather", given, output)
    name = tool.pop(NAME)
    inner = SpanSpec(parent=2, name=name, attributes=tool, start=2, end=4)

    call = one_call(trace_of({NAME: "agent"}, {NAME: name, **tool}, inner))

    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)
    assert call.error == (RESULT if failed else None)


# --- question, answer and agent --------------------------------------------------------------------------------------


IN_TWO_PLACES = f"In English: {QUESTION}"


@for_each(
    "tasks,description,question",
    [
        (dump([{"description": "{question}"}]), QUESTION, QUESTION),
        (
            dump([{"description": "Answer: {question} Be brief."}]),
            f"Answer: {QUESTION} Be brief.",
            QUESTION,
        ),
        (
            "[{'description': 'Answer: {q}', 'tools': [Tool(name='f')]}]",
            f"Answer: {QUESTION}",
            QUESTION,
        ),
        (dump([{"description": QUESTION}]), QUESTION, QUESTION),
        (dump([{"description": "In {language}: {question}"}]), IN_TWO_PLACES, IN_TWO_PLACES),
    ],
)
def test_a_crews_question_is_its_kickoffs_input_or_a_task_of_two_places_as_it_stands(
    tasks: str, description: str, question: str
) -> None:
    sent = dump([{"role": "user", "content": f"Current Task: {description}"}])
    trace = trace_of(
        {**entity("workflow", "crew"), "crewai.crew.tasks": tasks},
        {**entity("task", "t"), "crewai.task.description": description},
        {**CHAT, "gen_ai.input.messages": sent, "gen_ai.output.messages": says()},
    )

    assert trace.input == question


def test_llamaindex_has_question_answer_and_agent_in_the_events_of_its_steps() -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "blocks": [{"block_type": "text", "text": text}]}

    begun: dict[str, Any] = {"input": [message("user", QUESTION)], "current_agent_name": "clerk"}
    ended: dict[str, Any] = {"result": {"response": message("assistant", ANSWER), "tool_calls": []}}
    trace = trace_of(
        entity("workflow", "FunctionAgent", came=ended),
        entity("task", "BaseWorkflowAgent", came=begun),
        entity("task", "BaseWorkflowAgent", came=ended),
        scope="opentelemetry.instrumentation.llamaindex",
    )

    assert (trace.input, trace.output, trace.agent) == (QUESTION, ANSWER, "clerk")


def test_an_answer_that_is_the_literal_of_an_empty_text_is_none() -> None:
    said = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": '""'}

    assert trace_of({"llm.request.type": "chat", **said}).output is None


def test_the_agent_of_a_decorated_workflow_is_the_graph_inside() -> None:
    node = {"traceloop.association.properties.langgraph_node": "model"}
    around, helper = entity("workflow", "support_chat"), entity("workflow", "helper")
    inside = SpanSpec(parent=2, attributes={"traceloop.span.kind": "task", **node})

    assert trace_of(around, helper).agent == "support_chat"
    assert trace_of(around, helper, inside).agent == "helper"


# --- OpenLLMetry for JS - LangChain's graphs, whose tools are named by their class -----------------------------------


FAILURE = "Error: timed out\n Please fix your mistakes."
GRAPHS = "@traceloop/instrumentation-langchain"


def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", kind], "kwargs": kwargs}


LC_CALL = {"name": "get_weather", "args": ARGUMENTS, "type": "tool_call", "id": "c1"}
TOLD = lc("ToolMessage", content=RESULT, tool_call_id="c1", name="get_weather", status="success")
STATE = [
    lc("HumanMessage", content=QUESTION),
    lc("AIMessage", content="", tool_calls=[LC_CALL]),
    TOLD,
    lc("AIMessage", content=ANSWER),
]


def js_entity(operation: str, kind: str, name: str, **sides: Any) -> dict[str, Any]:
    said = under("traceloop.entity.", name=name, **{k: compact(v) for k, v in sides.items()})
    return {"gen_ai.operation.name": operation, "traceloop.span.kind": kind, **said}


def graph(messages: list[Any]) -> SpanSpec:
    name = "CompiledStateGraph"
    sides = {"input": {"messages": [USER]}, "output": {"messages": messages}}
    attributes = {
        "traceloop.workflow.name": name,
        **js_entity("workflow", "workflow", name, **sides),
    }
    return SpanSpec(name=f"workflow {name}", attributes=attributes, start=1, end=90)


def tool_by_class(status: int = 0, **output: Any) -> SpanSpec:
    name = "DynamicStructuredTool"
    given = {"args": [compact(ARGUMENTS)]}
    attributes = js_entity("execute_tool", "task", name, input=given, **output)
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
JS_ASKED = {
    **CHAT,
    "gen_ai.output.messages": compact([{"role": "assistant", "tool_calls": [LC_CALL]}]),
}


@for_each(
    "spans,error",
    [
        ([SILENT, tool_by_class(output=TOLD)], None),  # its result names it
        ([graph(STATE[:2]), SILENT, FAILED], "timed out"),  # the graph's state does
        ([JS_ASKED, FAILED], "timed out"),  # the model's answer does
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

"""OpenLLMetry's entities, and the frameworks under them."""

import json
from typing import Any

import pytest

from evaluators.model import JSON, Trace
from tests.support.conventions import CHAT, ROOT, asks, says
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import CALL
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump, one_call
from tests.support.whole_traces import HISTORY, PROMPT, SCHEMA, assert_whole_turn, flattened, usages

DECORATOR = "traceloop.tracer"


def entity(kind: str, name: str) -> dict[str, Any]:
    """The attributes of a span, with its name."""
    return {NAME: f"{name}.{kind}", "traceloop.span.kind": kind, "traceloop.entity.name": name}


def test_tools_of_a_responses_call_which_states_no_request_type() -> None:
    trace = trace_of({}, {**CHAT, "gen_ai.system": "openai", "llm.request.functions.0.name": "f"})

    assert [tool.name for tool in trace.tools_offered] == ["f"]


BESIDE: list[JSON] = [
    {"messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]},
    {"functions": [{"name": "f", "parameters": {}}]},
    {"kwargs": {"tools": [{"name": "f", "input_schema": {}}]}},
    {"invocation_params": {"tools": dump([{"name": "f"}])}},
]


@pytest.mark.parametrize("given", BESIDE)
def test_tools_stand_beside_the_messages_of_a_models_step(given: JSON) -> None:
    call = {"llm.request.type": "chat", "traceloop.entity.input": dump(given)}

    trace = trace_of({**entity("task", "OpenAI"), **call})

    assert [tool.name for tool in trace.tools_offered] == ["f"]


def test_a_failed_call_without_a_span_is_not_its_repetition() -> None:
    failed = [{"type": "tool_result", "tool_use_id": "c1", "content": "too slow", "is_error": True}]
    trace = trace_of(
        ROOT,
        {**CHAT, "gen_ai.output.messages": asks("c1")},
        {
            **CHAT,
            "gen_ai.input.messages": dump([{"role": "user", "content": failed}]),
            "gen_ai.output.messages": asks("c2"),
        },
        {
            **entity("tool", "get_weather"),
            "traceloop.entity.input": dump({"args": [], "kwargs": ARGUMENTS}),
            "traceloop.entity.output": dump(RESULT),
        },
    )

    first, second = trace.tool_calls
    assert (first.id, first.error, first.span_id) == ("c1", "too slow", None)
    assert (second.id, second.error, second.result) == ("c2", None, RESULT)


def test_a_tool_node_answers_for_the_span_of_a_tool_that_failed() -> None:
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "ToolMessage"],
        "kwargs": {"content": "too slow", "type": "tool", "tool_call_id": "c1", "status": "error"},
    }
    trace = trace_of(
        {
            **entity("task", "tools"),
            "traceloop.entity.output": dump({"outputs": {"messages": [message]}}),
        },
        {
            **entity("tool", "get_weather"),
            "traceloop.entity.input": dump({"inputs": ARGUMENTS, "input_str": ""}),
        },
    )

    call = one_call(trace)
    assert (call.id, call.arguments, call.error) == ("c1", ARGUMENTS, "too slow")


@pytest.mark.parametrize(
    ("shown", "result", "error"),
    [
        ("status='success' result='rainy, 14 °C' error=None", RESULT, None),
        ("status='failure' result=None error=\"it's slow\"", "it's slow", "it's slow"),
    ],
)
def test_agno_shows_its_result_of_a_function(shown: str, result: str, error: str | None) -> None:
    output = f"{shown} updated_session_state=None images=None"
    trace = trace_of({**entity("tool", "f"), "traceloop.entity.output": output})

    call = one_call(trace)
    assert (call.result, call.error) == (result, error)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("BaseWorkflowAgent.task", {"tool.name": "get_weather", "tool.arguments": dump(ARGUMENTS)}),
        ("call_tool.task", {}),
    ],
    ids=["newer", "older"],
)
def test_the_workflow_step_of_llama_index_that_calls_a_tool(name: str, given: Any) -> None:
    output = {
        "tool_name": "get_weather",
        "tool_id": "c1",
        "tool_output": {
            "blocks": [{"block_type": "text", "text": "too slow"}],
            "tool_name": "get_weather",
            "raw_output": "too slow",
            "is_error": True,
        },
    }
    trace = trace_of(
        ROOT,
        {**CHAT, "gen_ai.output.messages": asks("c1")},
        {**entity("task", name), **given, "traceloop.entity.output": dump(output)},
    )

    call = one_call(trace)
    assert (call.name, call.id, call.arguments) == ("get_weather", "c1", ARGUMENTS)
    assert call.error == "too slow"


def test_a_tool_under_the_task_decorator() -> None:
    asked = {**CHAT, "gen_ai.output.messages": asks("c1")}
    given = {"traceloop.span.kind": "task", "traceloop.entity.name": "get_weather"}
    failed = SpanSpec(
        id=3, parent=1, scope=DECORATOR, start=3, attributes=given, status=2, message="too slow"
    )

    call = one_call(trace_of(ROOT, asked, failed))
    assert (call.id, call.arguments, call.error) == ("c1", ARGUMENTS, "too slow")


def test_a_task_that_no_model_asked_for_is_no_tool() -> None:
    done = {**entity("task", "clean"), "traceloop.entity.output": dump("done")}

    assert trace_of(ROOT, done, scope=DECORATOR).tool_calls == ()


def test_a_result_under_the_other_of_a_calls_two_ids() -> None:
    history: list[Any] = [
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "tool_calls": [{"id": "fc_1", "name": "f"}, {"id": "fc_2", "name": "g"}],
        },
        {"role": "tool", "content": "one", "tool_call_id": "call_1"},
        {"role": "tool", "content": "two", "tool_call_id": "call_2"},
    ]
    both = (
        json.loads(asks("fc_1", name="f"))[0]["parts"]
        + json.loads(asks("fc_2", name="g"))[0]["parts"]
    )
    trace = trace_of(
        ROOT,
        {**CHAT, "gen_ai.output.messages": dump([{"role": "assistant", "parts": both}])},
        {**CHAT, "gen_ai.input.messages": dump(history), "gen_ai.output.messages": says()},
    )

    assert [(call.name, call.result) for call in trace.tool_calls] == [("f", "one"), ("g", "two")]


def crew(tasks: str, description: str) -> Trace:
    return trace_of(
        {**entity("workflow", "crew"), "crewai.crew.tasks": tasks},
        {**entity("task", "t"), "crewai.task.description": description},
        {
            **CHAT,
            "gen_ai.input.messages": dump(
                [{"role": "user", "content": f"Current Task: {description}"}]
            ),
            "gen_ai.output.messages": says(),
        },
    )


@pytest.mark.parametrize(
    ("tasks", "description"),
    [
        (dump([{"description": "{question}"}]), QUESTION),
        (dump([{"description": "Answer: {question} Be brief."}]), f"Answer: {QUESTION} Be brief."),
        ("[{'description': 'Answer: {q}', 'tools': [Tool(name='f')]}]", f"Answer: {QUESTION}"),
        (dump([{"description": QUESTION}]), QUESTION),
    ],
)
def test_a_crews_question_is_its_kickoffs_input(tasks: str, description: str) -> None:
    assert crew(tasks, description).input == QUESTION


def test_a_task_of_two_places_is_the_question_as_it_stands() -> None:
    described = f"In English: {QUESTION}"

    assert crew(dump([{"description": "In {language}: {question}"}]), described).input == described


def test_an_agent_that_names_its_model_is_no_model_call() -> None:
    trace = trace_of(
        {
            **entity("agent", "clerk"),
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.model": "gpt-4o-mini",
            "crewai.agent.tools": dump([{"name": "f", "description": "d"}]),
        }
    )

    assert (trace.agent, trace.model_calls) == ("clerk", ())
    assert [tool.name for tool in trace.tools_offered] == ["f"]


def test_a_traceloop_mcp_call_is_its_arguments_and_its_text() -> None:
    for failed in (False, True):
        output = {"result": RESULT, **({"is_error": True} if failed else {})}
        attributes = {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "get_weather",
            "traceloop.entity.input": dump({"tool_name": "get_weather", "arguments": ARGUMENTS}),
            "traceloop.entity.output": dump(output),
        }
        trace = trace_of(
            {NAME: "agent"},
            {NAME: "get_weather.tool", **attributes},
            SpanSpec(
                id=3, parent=2, name="get_weather.tool", attributes=attributes, start=2, end=4
            ),
        )

        call = one_call(trace)
        assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)
        assert call.error == (RESULT if failed else None)


def test_a_whole_trace_of_traceloop_flat() -> None:
    one, two = usages("gen_ai.usage.", "prompt_tokens", "completion_tokens")
    common = {
        "llm.request.type": "chat",
        "gen_ai.request.model": "gpt-4o-mini",
        "llm.request.functions.0.name": "get_weather",
        "llm.request.functions.0.parameters": dump(SCHEMA),
    }
    call = {"role": "assistant", "content": '""', "tool_calls": [CALL]}
    assert_whole_turn(
        scope="opentelemetry.instrumentation.crewai",
        root={"traceloop.span.kind": "workflow", "traceloop.entity.name": "helper"},
        first={
            **common,
            **one,
            **flattened("gen_ai.prompt", PROMPT),
            **flattened("gen_ai.completion", [call]),
        },
        tool={
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "get_weather",
            "traceloop.entity.input": dump({"args": [], "kwargs": ARGUMENTS}),
            "traceloop.entity.output": dump(RESULT),
        },
        last={
            **common,
            **two,
            **flattened("gen_ai.prompt", HISTORY),
            **flattened("gen_ai.completion", [{"role": "assistant", "content": ANSWER}]),
        },
    )


def test_llamaindex_without_spans_of_its_model_has_question_and_answer_in_its_events() -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        blocks = [{"block_type": "text", "text": text}]
        return {"role": role, "additional_kwargs": {}, "blocks": blocks}

    begun: dict[str, Any] = {"input": [message("user", QUESTION)], "current_agent_name": "clerk"}
    ended: dict[str, Any] = {"result": {"response": message("assistant", ANSWER), "tool_calls": []}}
    called = {"traceloop.entity.output": dump({"tool_name": "get_weather", "tool_output": RESULT})}
    step = entity("task", "BaseWorkflowAgent")
    trace = trace_of(
        {**entity("workflow", "FunctionAgent"), "traceloop.entity.output": dump(ended)},
        {**step, "traceloop.entity.output": dump(begun)},
        {**step, "traceloop.entity.output": dump(begun)},
        {**step, "tool.name": "get_weather", "tool.arguments": dump(ARGUMENTS), **called},
        {**step, "traceloop.entity.output": dump(ended)},
        scope="opentelemetry.instrumentation.llamaindex",
    )

    assert (trace.input, trace.output, trace.agent) == (QUESTION, ANSWER, "clerk")
    assert one_call(trace).arguments == ARGUMENTS


def test_the_agent_of_a_decorated_workflow_is_the_graph_inside() -> None:
    node = {"traceloop.association.properties.langgraph_node": "model"}
    around, helper = entity("workflow", "support_chat"), entity("workflow", "helper")
    inside = SpanSpec(id=3, parent=2, attributes={"traceloop.span.kind": "task", **node})
    assert trace_of(around, helper).agent == "support_chat"
    assert trace_of(around, helper, inside).agent == "helper"

"""Stacks of JavaScript: spans as their libraries export them, cut to what a rule needs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact

FAILURE = "Error: timed out\n Please fix your mistakes."


GRAPHS = "@traceloop/instrumentation-langchain"


@pytest.mark.parametrize(
    "key",
    [
        "traceloop.association.properties.sessionId",
        "ai.settings.context.sessionId",
        "mastra.metadata.sessionId",
        "genkit:metadata:sessionId",
        "langsmith.metadata.threadId",
        "langfuse.trace.metadata.chatId",
        "sessionId",
    ],
)
def test_a_session_id_is_read_as_javascript_spells_it(key: str) -> None:
    trace = trace_of(SpanSpec(id=1, attributes={"gen_ai.operation.name": "chat", key: "s-1"}))

    assert (trace.session_id, trace.session_source) == ("s-1", key)


def test_a_session_id_wins_over_a_thread_id_in_a_better_bag() -> None:
    attributes = {"ai.telemetry.metadata.threadId": "t-1", "mastra.metadata.sessionId": "s-1"}

    assert trace_of(SpanSpec(id=1, attributes=attributes)).session_id == "s-1"


# --- OpenLLMetry for JS ----------------------------------------------------------------------------------------------


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

    (call,) = trace_of(SpanSpec(id=1, end=100), silent_call(), answered).tool_calls

    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def test_a_failed_tool_named_by_its_class_learns_its_name_from_the_graphs_state() -> None:
    failed = tool_by_class(status=2, message="timed out")

    trace = trace_of(SpanSpec(id=1, end=100), graph(STATE[:2]), silent_call(), failed)

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

    trace = trace_of(SpanSpec(id=1, end=100), model, tool_by_class(status=2, message="timed out"))

    assert [(call.name, call.error) for call in trace.tool_calls] == [("get_weather", "timed out")]


def test_calls_that_only_a_graphs_state_tells_are_found_once() -> None:
    trace = trace_of(SpanSpec(id=1, end=100), graph(STATE), silent_call())

    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def test_a_former_turns_calls_in_a_graphs_state_do_not_count() -> None:
    later = [*STATE, lc("HumanMessage", content="And now?"), lc("AIMessage", content="Still.")]

    assert trace_of(SpanSpec(id=1, end=100), graph(later), silent_call()).tool_calls == ()


def test_a_graphs_state_is_not_asked_where_the_models_answers_say_their_calls() -> None:
    spoken = [{"role": "assistant", "content": ANSWER}]
    model = SpanSpec(
        id=3,
        parent=1,
        attributes={"gen_ai.operation.name": "chat", "gen_ai.output.messages": compact(spoken)},
    )

    assert trace_of(SpanSpec(id=1, end=100), graph(STATE), model).tool_calls == ()


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

    assert trace_of(SpanSpec(id=1, end=100), silent_call(), inner).tokens.input == 5
    assert len(trace_of(SpanSpec(id=1, end=100), silent_call(), inner, other).model_calls) == 1
    apart = SpanSpec(
        id=7, parent=1, scope="x", attributes=silent_call().attributes, start=50, end=60
    )
    assert len(trace_of(SpanSpec(id=1, end=100), silent_call(), inner, apart).model_calls) == 2


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

    trace = trace_of(SpanSpec(id=1, end=100), hollow, second)

    assert trace.input == QUESTION
    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.error) == ("get_weather", ARGUMENTS, FAILURE)


def test_a_graphs_state_is_the_first_of_two_arguments() -> None:
    state = {"messages": [lc("HumanMessage", content=QUESTION)]}
    step = SpanSpec(
        id=2,
        parent=1,
        attributes={
            "traceloop.span.kind": "task",
            "traceloop.entity.input": compact({"args": [state, {"x": 1}]}),
        },
    )
    root = SpanSpec(
        id=1,
        attributes={
            "traceloop.span.kind": "workflow",
            "traceloop.entity.input": compact({"args": [], "kwargs": {}}),
        },
        end=10,
    )

    assert trace_of(root, step).input == QUESTION


def test_what_it_renames_in_the_ai_sdks_spans() -> None:
    chat = {
        "ai.operationId": "ai.generateText.doGenerate",
        "llm.request.functions.0.name": "get_weather",
    }
    tool = {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "get_weather",
        "traceloop.entity.input": compact(ARGUMENTS),
        "traceloop.entity.output": compact(RESULT),
    }

    trace = trace_of(
        SpanSpec(id=1, end=9),
        SpanSpec(id=2, parent=1, attributes=chat),
        SpanSpec(id=3, parent=1, attributes=tool),
    )

    assert [offered.name for offered in trace.tools_offered] == ["get_weather"]
    assert [(c.arguments, c.result) for c in trace.tool_calls] == [(ARGUMENTS, RESULT)]


# --- Mastra before 1.0, Genkit, Sentry -------------------------------------------------------------------------------


def test_mastra_before_1_0() -> None:
    def span(number: int, parent: int, kind: str, **attributes: Any) -> SpanSpec:
        given = {"mastra.span.type": kind, **attributes}
        return SpanSpec(id=number, parent=parent, attributes=given, scope="@mastra/otel", end=99)

    body = {"body": {"tools": [{"type": "function", "function": {"name": "get_weather"}}]}}
    trace = trace_of(
        span(
            1,
            0,
            "agent_run",
            input=compact([{"role": "user", "content": QUESTION}]),
            output=compact({"text": ANSWER, "files": []}),
            **{"gen_ai.agent.id": "weather", "sessionId": "s-1"},
        ),
        span(
            2,
            1,
            "model_generation",
            output=compact({"text": ANSWER}),
            **{"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 3},
        ),
        span(3, 2, "model_step", input=compact(body)),
        span(
            4,
            3,
            "tool_call",
            input=compact(ARGUMENTS),
            output=RESULT,
            **{"gen_ai.tool.name": "get_weather"},
        ),
        span(5, 3, "tool_call", error=True, **{"gen_ai.tool.name": "b", "error.message": "no"}),
    )

    assert (trace.input, trace.output, trace.session_id) == (QUESTION, ANSWER, "s-1")
    assert (trace.agents, trace.tokens.input, trace.tokens.output) == (("weather",), 5, 3)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    first, failed = trace.tool_calls
    assert (first.arguments, first.result, first.error) == (ARGUMENTS, RESULT, None)
    assert (failed.name, failed.error) == ("b", "no")


def test_a_models_step_of_mastra_1_0_has_the_request_as_it_was_sent() -> None:
    body = {"body": {"tools": [{"type": "function", "function": {"name": "get_weather"}}]}}
    step = {
        "gen_ai.operation.name": "model_step",
        "mastra.span.type": "model_step",
        "mastra.model_step.input": compact(body),
    }

    trace = trace_of(SpanSpec(id=1, attributes=step, scope="@mastra/otel-exporter"))

    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]


def test_genkit() -> None:
    def span(number: int, parent: int, subtype: str, name: str, **more: Any) -> SpanSpec:
        given = {
            "genkit:type": "action",
            "genkit:metadata:subtype": subtype,
            "genkit:name": name,
            **{f"genkit:{key}": compact(value) for key, value in more.items()},
        }
        return SpanSpec(
            id=number,
            parent=parent,
            attributes=given,
            start=number,
            end=number * 10 if parent else 99,
        )

    question = {"role": "user", "content": [{"text": QUESTION}]}
    asked = {"toolRequest": {"name": "get_weather", "ref": "c1", "input": ARGUMENTS}}
    trace = trace_of(
        span(1, 0, "flow", "weather", input=QUESTION, output=ANSWER),
        span(
            2,
            1,
            "model",
            "openai/gpt-4o-mini",
            input={"messages": [question], "tools": [{"name": "get_weather", "inputSchema": {}}]},
            output={
                "message": {"role": "model", "content": [asked]},
                "usage": {"inputTokens": 5, "outputTokens": 3, "cachedContentTokens": 2},
            },
        ),
        span(3, 1, "tool", "get_weather", input=ARGUMENTS, output=RESULT),
    )

    assert (trace.input, trace.output, trace.agents) == (QUESTION, ANSWER, ("weather",))
    assert (trace.tokens.input, trace.tokens.output, trace.tokens.cached) == (5, 3, 2)
    assert trace.models == ("gpt-4o-mini",)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    (call,) = trace.tool_calls
    assert (call.id, call.arguments, call.result) == ("c1", ARGUMENTS, RESULT)


def test_sentry_writes_an_answers_texts_and_calls_apart() -> None:
    call = {"id": "c1", "function": {"name": "get_weather", "arguments": compact(ARGUMENTS)}}
    asks = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": compact([{"role": "user", "content": QUESTION}]),
        "gen_ai.response.text": compact([""]),
        "gen_ai.response.tool_calls": compact([call]),
    }
    says = {"gen_ai.operation.name": "chat", "gen_ai.response.text": ANSWER}

    trace = trace_of(
        SpanSpec(id=1, end=100),
        SpanSpec(id=2, parent=1, attributes=asks, start=10, end=20),
        SpanSpec(id=3, parent=1, attributes=says, start=50, end=60),
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert [(c.name, c.arguments) for c in trace.tool_calls] == [("get_weather", ARGUMENTS)]

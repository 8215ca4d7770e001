"""Mastra, before 1.0 and since."""

from typing import Any

from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact, dump, one_call


def mastra(kind: str, **more: Any) -> dict[str, Any]:
    return {"mastra.span.type": kind, **more}


def test_mastra_agent_model_and_tool() -> None:
    parts_in = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    asked = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": ARGUMENTS}],
    }
    said = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    trace = trace_of(
        {
            NAME: "invoke_agent weather-agent",
            **mastra("agent_run"),
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "weather-agent",
            "gen_ai.conversation.id": "thread-7",
            "gen_ai.tool.definitions": dump(["get_weather"]),
            "gen_ai.system_instructions": "Be brief.",
            "mastra.agent_run.input": dump([{"role": "user", "content": QUESTION}]),
            "mastra.agent_run.output": dump({"text": ANSWER}),
        },
        {
            NAME: "chat gpt-4o",
            **mastra("model_generation"),
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.input.messages": dump(parts_in),
            "gen_ai.output.messages": dump([asked]),
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.usage.output_tokens": 2,
        },
        SpanSpec(
            id=3,
            parent=2,
            name="model_step",
            start=1,
            end=2,
            attributes={**mastra("model_step"), "gen_ai.operation.name": "model_step"},
        ),
        {
            NAME: "execute_tool get_weather",
            **mastra("tool_call"),
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": dump(ARGUMENTS),
            "gen_ai.tool.call.result": RESULT,
        },
        {
            NAME: "chat gpt-4o",
            **mastra("model_generation"),
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.input.messages": dump(parts_in),
            "gen_ai.output.messages": dump(said),
            "gen_ai.usage.input_tokens": 20,
            "gen_ai.usage.output_tokens": 3,
        },
        scope="@mastra/otel-exporter",
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id, trace.system) == (
        "weather-agent",
        "thread-7",
        "Be brief.",
    )
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    assert (trace.tokens.input, trace.tokens.output) == (30, 5)


def test_a_mastra_run_whose_model_calls_are_not_exported_still_has_question_and_answer() -> None:
    trace = trace_of(
        {
            **mastra("agent_run"),
            "gen_ai.operation.name": "invoke_agent",
            "mastra.agent_run.input": dump([{"role": "user", "content": QUESTION}]),
            "mastra.agent_run.output": dump({"text": ANSWER}),
        }
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_a_mastra_error_is_read_from_its_attribute_where_the_status_has_no_words() -> None:
    tool = SpanSpec(
        id=2,
        parent=1,
        status=2,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "error.type": "TOOL_EXECUTION_FAILED",
            "error.message": "no such city",
        },
    )

    assert one_call(trace_of({}, tool)).error == "no such city"


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

    trace = trace_of(step, scope="@mastra/otel-exporter")

    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]

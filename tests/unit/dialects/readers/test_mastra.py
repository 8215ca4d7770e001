"""Mastra, before 1.0 and since."""

from typing import Any

from tests.support.conventions import CHAT, HELPER, asked, asks, says, tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import assert_whole
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, USER, compact, dump, one_call

EXPORTER = "@mastra/otel-exporter"
BODY = {"body": {"tools": [{"type": "function", "function": {"name": "get_weather"}}]}}
RUN = {
    "mastra.span.type": "agent_run",
    **HELPER,
    "mastra.agent_run.input": dump([USER]),
    "mastra.agent_run.output": dump({"text": ANSWER}),
}


def test_mastra_agent_model_and_tool() -> None:
    def chat(answer: str, given: int, came: int) -> dict[str, Any]:
        return {
            NAME: "chat gpt-4o",
            "mastra.span.type": "model_generation",
            **CHAT,
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.input.messages": asked(QUESTION),
            "gen_ai.output.messages": answer,
            "gen_ai.usage.input_tokens": given,
            "gen_ai.usage.output_tokens": came,
        }

    step = {"mastra.span.type": "model_step", "gen_ai.operation.name": "model_step"}
    ran = tool("get_weather", "c1", dump(ARGUMENTS), RESULT)
    own = {
        NAME: "invoke_agent helper",
        "gen_ai.conversation.id": "thread-7",
        "gen_ai.tool.definitions": dump(["get_weather"]),
        "gen_ai.system_instructions": "Be brief.",
    }
    trace = trace_of(
        {**RUN, **own},
        chat(asks("c1"), 10, 2),
        SpanSpec(parent=2, name="model_step", start=1, end=2, attributes=step),
        {NAME: "execute_tool get_weather", "mastra.span.type": "tool_call", **ran},
        chat(says(), 20, 3),
        scope=EXPORTER,
    )

    assert_whole(trace)
    assert (trace.agent, trace.session_id, trace.system) == ("helper", "thread-7", "Be brief.")
    assert [each.name for each in trace.tools_offered] == ["get_weather"]
    assert (trace.tokens.input, trace.tokens.output) == (30, 5)


def test_a_mastra_run_whose_model_calls_are_not_exported_still_has_question_and_answer() -> None:
    trace = trace_of(RUN)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)


def test_a_mastra_error_is_read_from_its_attribute_where_the_status_has_no_words() -> None:
    error = {"error.type": "TOOL_EXECUTION_FAILED", "error.message": "no such city"}
    failed = SpanSpec(status=2, attributes=tool(**error))

    assert one_call(trace_of({}, failed)).error == "no such city"


def test_mastra_before_1_0() -> None:
    def span(parent: int, kind: str, own: dict[str, Any], **more: Any) -> SpanSpec:
        sides = {key: compact(value) for key, value in more.items()}
        return SpanSpec(parent=parent, attributes={"mastra.span.type": kind, **own, **sides})

    counts = {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 3}
    agent = {"gen_ai.agent.id": "weather", "sessionId": "s-1"}
    named = {"gen_ai.tool.name": "get_weather", "output": RESULT}
    failing = {"gen_ai.tool.name": "b", "error": True, "error.message": "no"}
    trace = trace_of(
        span(0, "agent_run", agent, input=[USER], output={"text": ANSWER, "files": []}),
        span(1, "model_generation", counts, output={"text": ANSWER}),
        span(2, "model_step", {}, input=BODY),
        span(3, "tool_call", named, input=ARGUMENTS),
        span(3, "tool_call", failing),
        scope="@mastra/otel",
    )

    assert (trace.input, trace.output, trace.session_id) == (QUESTION, ANSWER, "s-1")
    assert (trace.agents, trace.tokens.input, trace.tokens.output) == (("weather",), 5, 3)
    assert [each.name for each in trace.tools_offered] == ["get_weather"]
    first, failed = trace.tool_calls
    assert (first.arguments, first.result, first.error) == (ARGUMENTS, RESULT, None)
    assert (failed.name, failed.error) == ("b", "no")


def test_a_models_step_of_mastra_1_0_has_the_request_as_it_was_sent() -> None:
    kind = {"gen_ai.operation.name": "model_step", "mastra.span.type": "model_step"}
    trace = trace_of({**kind, "mastra.model_step.input": compact(BODY)}, scope=EXPORTER)

    assert [each.name for each in trace.tools_offered] == ["get_weather"]

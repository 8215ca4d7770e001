"""Spring AI."""

from typing import Any

import pytest

from evaluators.model import Trace
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact, one_call


def test_spring_ai() -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "5"}
    trace = trace_of(
        {
            NAME: "spring_ai chat_client",
            "spring.ai.kind": "chat_client",
            "gen_ai.operation.name": "framework",
            "gen_ai.system": "spring_ai",
            "spring.ai.chat.client.conversation.id": "s-1",
            "spring.ai.chat.client.tool.names": compact(["get_weather"]),
        },
        SpanSpec(
            id=2,
            parent=1,
            attributes={**chat, "spring.ai.model.request.tool.names": compact(["get_weather"])},
            events=[
                ("gen_ai.content.prompt", {"gen_ai.prompt": ["Be kind.", QUESTION]}),
                ("gen_ai.content.completion", {"gen_ai.completion": [ANSWER]}),
            ],
            start=1,
            end=90,
        ),
        SpanSpec(
            id=3,
            parent=2,
            name="tool_call get_weather",
            attributes={
                "spring.ai.kind": "tool_call",
                "gen_ai.operation.name": "framework",
                "spring.ai.tool.definition.name": "get_weather",
                "spring.ai.tool.call.arguments": compact(ARGUMENTS),
                "spring.ai.tool.call.result": compact(RESULT),
            },
            start=10,
            end=20,
        ),
    )

    assert (trace.input, trace.output, trace.session_id) == (QUESTION, ANSWER, "s-1")
    assert (trace.tokens.input, len(trace.model_calls)) == (5, 1)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.result) == ("get_weather", ARGUMENTS, RESULT)


def step(number: int, name: str, **attributes: Any) -> SpanSpec:
    return SpanSpec(
        id=number, parent=1, name=name, attributes=attributes, start=number, end=number + 1
    )


def model(number: int, input_tokens: int, output_tokens: int) -> SpanSpec:
    counts = {"gen_ai.usage.input_tokens": str(input_tokens)}
    counts |= {"gen_ai.usage.output_tokens": str(output_tokens), "gen_ai.operation.name": "chat"}
    return step(number, "chat", **counts)


def called(number: int, name: str = "tool_call get_weather", result: str = '"rain"') -> SpanSpec:
    return step(
        number,
        name,
        **{
            "spring.ai.kind": "tool_call",
            "spring.ai.tool.definition.name": "get_weather",
            "spring.ai.tool.call.result": result,
        },
    )


def in_loop(*steps: SpanSpec) -> Trace:
    return trace_of({NAME: "call"}, *steps)


def counts(trace: Trace) -> list[tuple[int | None, int | None]]:
    return [(call.tokens.input, call.tokens.output) for call in trace.model_calls]


def test_model_calls_of_one_loop_count_on_in_the_first_version() -> None:
    trace = in_loop(model(2, 148, 13), called(3), model(4, 372, 26), called(5), model(6, 667, 43))

    assert counts(trace) == [(148, 13), (224, 13), (295, 17)]
    assert (trace.tokens.input, trace.tokens.output) == (667, 43)


def test_they_do_not_in_the_second_version() -> None:
    trace = in_loop(model(2, 148, 13), called(3, "execute_tool get_weather"), model(4, 372, 26))
    assert counts(trace) == [(148, 13), (372, 26)]


def test_a_call_that_no_tool_came_before_begins_again() -> None:
    trace = in_loop(model(2, 100, 5), called(3), model(4, 300, 9), model(5, 400, 20))
    assert counts(trace) == [(100, 5), (200, 4), (400, 20)]


@pytest.mark.parametrize(
    ("result", "failed"),
    [('"rain"', False), ('{"a": 1}', False), ("12", False), ("backend timed out", True)],
)
def test_a_result_that_is_no_json_is_the_message_of_what_was_raised(
    result: str, *, failed: bool
) -> None:
    call = one_call(in_loop(called(2, result=result)))
    assert (call.error is not None) is failed


def test_a_filter_of_the_users_own_writes_the_conventions_words() -> None:
    words = compact([{"role": "user", "content": QUESTION}])
    said = compact([{"role": "assistant", "content": ANSWER}])
    given = {"spring.ai.kind": "chat_client", "gen_ai.input.messages": words}
    trace = trace_of({**given, "gen_ai.output.messages": said})
    assert (trace.input, trace.output) == (QUESTION, ANSWER)

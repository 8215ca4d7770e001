"""Langfuse, also before it had types of observations (3.0 to 3.2)."""

from typing import Any

from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import ASKED, CALL, FUNCTION, TOLD, assert_whole
from tests.support.weather import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RESULT,
    SAID,
    USER,
    compact,
    dump,
    one_call,
)
from tests.support.whole_traces import HISTORY, OPENAI_TOOL, PROMPT, assert_whole_turn


def langfuse(id_: int, kind: str, *, name: str, start: int, **more: Any) -> SpanSpec:
    attributes = {f"langfuse.observation.{key}": value for key, value in more.items()}
    return SpanSpec(
        id=id_,
        parent=1,
        name=name,
        scope="langfuse-sdk",
        start=start,
        end=start + 1,
        attributes={"langfuse.observation.type": kind, **attributes},
    )


def generation(id_: int, given: list[Any], came: Any, *, start: int) -> SpanSpec:
    return langfuse(
        id_, "generation", name="OpenAI", start=start, input=compact(given), output=compact(came)
    )


def test_a_span_named_as_a_requested_tool_is_its_execution() -> None:
    failed = {"level": "ERROR", "status_message": "timed out"}
    trace = trace_of(
        {NAME: "turn"},
        generation(2, [USER], ASKED, start=1),
        langfuse(
            3,
            "span",
            name="get_weather",
            start=3,
            input=compact({"args": [], "kwargs": ARGUMENTS}),
            **failed,
        ),
        generation(4, [USER, ASKED, TOLD], SAID, start=5),
        scope="langfuse-sdk",
    )

    call = one_call(trace)
    assert (call.error, call.span_id, call.arguments) == ("timed out", f"{3:016x}", ARGUMENTS)


def test_parallel_calls_take_the_spans_of_their_own_arguments() -> None:
    other = {"id": "c2", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    both = {"role": "assistant", "tool_calls": [CALL, other]}
    rome = {"input": compact({"args": [], "kwargs": {"city": "Rome"}}), "output": "sunny"}
    paris = {"input": compact({"args": [], "kwargs": ARGUMENTS}), "output": RESULT}
    trace = trace_of(
        {NAME: "turn"},
        generation(2, [USER], both, start=1),
        langfuse(3, "span", name="get_weather", start=3, **rome),
        langfuse(4, "span", name="get_weather", start=4, **paris),
        scope="langfuse-sdk",
    )

    found = {compact(call.arguments): call.result for call in trace.tool_calls}
    assert found == {compact(ARGUMENTS): RESULT, compact({"city": "Rome"}): "sunny"}


def test_a_streamed_call_without_its_id_is_found_once_and_has_its_result() -> None:
    nameless = {"role": "assistant", "tool_calls": [{"function": FUNCTION}]}
    trace = trace_of(
        {NAME: "turn"},
        generation(2, [USER], nameless, start=1),
        langfuse(
            3,
            "generation",
            name="OpenAI",
            start=5,
            input=compact([USER, ASKED, TOLD]),
            output=ANSWER,
        ),
        scope="langfuse-sdk",
    )

    assert_whole(trace)
    assert one_call(trace).id == "c1"


def silent(id_: int, given: list[Any], *, start: int) -> SpanSpec:
    return langfuse(id_, "generation", name="OpenAI", start=start, input=compact(given))


def test_a_nameless_call_is_found_once_though_another_answer_is_missing() -> None:
    nameless = {"role": "assistant", "tool_calls": [{"function": FUNCTION}]}
    trace = trace_of(
        {NAME: "turn"},
        generation(2, [USER], nameless, start=1),
        silent(3, [USER, ASKED, TOLD], start=5),
        scope="langfuse-sdk",
    )

    assert one_call(trace).result == RESULT


def test_a_plain_text_is_an_answer_so_no_history_is_searched_for_its_calls() -> None:
    first = langfuse(2, "generation", name="OpenAI", start=1, input=compact([USER]), output="Wait.")
    history = [USER, ASKED, TOLD]
    trace = trace_of(
        {NAME: "turn"},
        first,
        langfuse(3, "generation", name="OpenAI", start=5, input=compact(history), output=ANSWER),
        scope="langfuse-sdk",
    )

    assert trace.tool_calls == ()


def test_langfuse_3_keeps_the_session_of_its_langchain_handler_in_metadata() -> None:
    metadata = {"metadata.langfuse_session_id": "s1", "metadata.langfuse_user_id": "u1"}
    trace = trace_of(langfuse(1, "span", name="agent", start=0, input=QUESTION, **metadata))

    assert (trace.session_id, trace.user_id) == ("s1", "u1")


def test_langfuse_3_with_inputs_on_the_trace_and_a_tool_observation() -> None:
    trace = trace_of(
        {
            NAME: "agent",
            "langfuse.observation.type": "span",
            "langfuse.trace.name": "agent",
            "langfuse.trace.input": dump({"question": QUESTION}),
            "langfuse.trace.output": dump({"answer": ANSWER}),
            "session.id": "s-1",
            "user.id": "u-1",
        },
        {
            NAME: "get_weather",
            "langfuse.observation.type": "tool",
            "langfuse.observation.input": dump({"args": [], "kwargs": ARGUMENTS}),
            "langfuse.observation.output": RESULT,
        },
        scope="langfuse-sdk",
    )

    assert_whole(trace)
    assert (trace.session_id, trace.user_id) == ("s-1", "u-1")


def test_a_whole_trace_of_langfuse() -> None:
    def generation(messages: Any, output: Any, given: int, came: int) -> dict[str, Any]:
        return {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": dump({"messages": messages, "tools": [OPENAI_TOOL]}),
            "langfuse.observation.output": dump(output),
            "langfuse.observation.usage_details": dump(
                {"input": given, "output": came, "total": given + came}
            ),
        }

    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert_whole_turn(
        scope="langfuse-sdk",
        root={
            "langfuse.observation.type": "agent",
            "langfuse.observation.input": dump({"question": QUESTION}),
        },
        first=generation(PROMPT, call, 100, 10),
        tool={
            "langfuse.observation.type": "tool",
            "langfuse.observation.input": dump(ARGUMENTS),
            "langfuse.observation.output": RESULT,
        },
        last=generation(HISTORY, {"role": "assistant", "content": ANSWER}, 150, 20),
    )

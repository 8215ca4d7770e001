"""Langfuse, also before it had types of observations (3.0 to 3.2)."""

from typing import Any

from evaluators.model import Trace
from tests.support.dialect_spans import NAME, span_id, trace_of, under
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


def observed(kind: str, name: str = "", **own: Any) -> dict[str, Any]:
    return {NAME: name, **under("langfuse.observation.", type=kind, **own)}


def generation(given: list[Any], came: Any = None) -> dict[str, Any]:
    """A text as it is; what is no text as JSON."""
    output = {} if came is None else {"output": came if isinstance(came, str) else compact(came)}
    return observed("generation", "OpenAI", input=compact(given), **output)


def in_turn(*spans: dict[str, Any]) -> Trace:
    return trace_of({NAME: "turn"}, *spans, scope="langfuse-sdk")


def called(city: str, **more: str) -> dict[str, Any]:
    """An untyped span of the tool."""
    given = compact({"args": [], "kwargs": {"city": city}})
    return observed("span", "get_weather", input=given, **more)


def test_a_span_named_as_a_requested_tool_is_its_execution() -> None:
    failed = called("Paris", level="ERROR", status_message="timed out")

    call = one_call(
        in_turn(generation([USER], ASKED), failed, generation([USER, ASKED, TOLD], SAID))
    )

    assert (call.error, call.span_id, call.arguments) == ("timed out", span_id(3), ARGUMENTS)


def test_parallel_calls_take_the_spans_of_their_own_arguments() -> None:
    other = {"id": "c2", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    both = {"role": "assistant", "tool_calls": [CALL, other]}
    results = {"Rome": "sunny", "Paris": RESULT}
    ran = (called(city, output=result) for city, result in results.items())

    trace = in_turn(generation([USER], both), *ran)

    found = {compact(call.arguments): call.result for call in trace.tool_calls}
    assert found == {compact({"city": city}): result for city, result in results.items()}


NAMELESS = generation([USER], {"role": "assistant", "tool_calls": [{"function": FUNCTION}]})


def test_a_streamed_call_without_its_id_is_found_once_and_has_its_result() -> None:
    trace = in_turn(NAMELESS, generation([USER, ASKED, TOLD], ANSWER))

    assert_whole(trace)
    assert one_call(trace).id == "c1"


def test_a_nameless_call_is_found_once_though_another_answer_is_missing() -> None:
    assert one_call(in_turn(NAMELESS, generation([USER, ASKED, TOLD]))).result == RESULT


def test_a_plain_text_is_an_answer_so_no_history_is_searched_for_its_calls() -> None:
    spans = generation([USER], "Wait."), generation([USER, ASKED, TOLD], ANSWER)

    assert in_turn(*spans).tool_calls == ()


def test_langfuse_3_keeps_the_session_of_its_langchain_handler_in_metadata() -> None:
    ids = {"metadata__langfuse_session_id": "s1", "metadata__langfuse_user_id": "u1"}
    trace = trace_of(observed("span", "agent", input=QUESTION, **ids), scope="langfuse-sdk")

    assert (trace.session_id, trace.user_id) == ("s1", "u1")


def test_langfuse_3_with_inputs_on_the_trace_and_a_tool_observation() -> None:
    sides = {"input": dump({"question": QUESTION}), "output": dump({"answer": ANSWER})}
    ids = {"session.id": "s-1", "user.id": "u-1"}
    given = dump({"args": [], "kwargs": ARGUMENTS})
    trace = trace_of(
        {**observed("span", "agent"), **under("langfuse.trace.", name="agent", **sides), **ids},
        observed("tool", "get_weather", input=given, output=RESULT),
        scope="langfuse-sdk",
    )

    assert_whole(trace)
    assert (trace.session_id, trace.user_id) == ("s-1", "u-1")


def test_a_whole_trace_of_langfuse() -> None:
    def model(messages: Any, output: Any, given: int, came: int) -> dict[str, Any]:
        return observed(
            "generation",
            input=dump({"messages": messages, "tools": [OPENAI_TOOL]}),
            output=dump(output),
            usage_details=dump({"input": given, "output": came, "total": given + came}),
        )

    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert_whole_turn(
        scope="langfuse-sdk",
        root=observed("agent", "helper", input=dump({"question": QUESTION})),
        first=model(PROMPT, call, 100, 10),
        tool=observed("tool", "get_weather", input=dump(ARGUMENTS), output=RESULT),
        last=model(HISTORY, SAID, 150, 20),
    )

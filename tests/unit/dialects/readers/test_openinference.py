"""OpenInference's flattened messages, and what they lose."""

from typing import Any

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.openai_messages import CALL
from tests.support.openinference import SCOPE, asked, calls, exchange, flat, llm, of
from tests.support.weather import ARGUMENTS, RESULT, SAID, USER, dump
from tests.support.whole_traces import (
    HISTORY,
    OPENAI_TOOL,
    PROMPT,
    assert_whole_turn,
    usages,
)


def test_a_result_of_other_arguments_is_not_taken() -> None:
    result = {"role": "tool", "content": "Oslo: dry"}
    trace = trace_of(
        exchange(1, "litellm", [USER], asked("Paris")),
        exchange(2, "litellm", [USER, asked("Oslo"), result], SAID),
    )

    assert calls(trace) == [("get_weather", ARGUMENTS, None, False)]


def test_token_counts_that_were_not_flattened_are_read_from_the_answer() -> None:
    answer: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    pieces = [dump({"choices": []}), dump(answer)]
    trace = trace_of(
        llm(1, "agno", flat("input", USER), output__value=dump(answer)),
        exchange(2, "agno", [USER], SAID, output__value=dump(pieces)),
    )

    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


COUNTS = usages("llm.token_count.", "prompt", "completion")
AGENT = of("AGENT", agent__name="helper")
WEATHER = of("TOOL", tool__name="get_weather")


def test_a_whole_trace_of_openinference_unflattened() -> None:
    """An instrumentation that only records the request and the answer (instructor, portkey, older ones)."""

    def model(counts: dict[str, int], request: Any, said: dict[str, Any]) -> dict[str, Any]:
        answer = {"choices": [{"message": said}]}
        return of("LLM", input__value=dump(request), output__value=dump(answer)) | counts

    request = {"model": "gpt-4o-mini", "messages": PROMPT, "tools": [OPENAI_TOOL]}
    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert_whole_turn(
        scope=SCOPE + "portkey",
        root=AGENT,
        first=model(COUNTS[0], request, call),
        tool={**WEATHER, "tool.parameters": dump(ARGUMENTS), "output.value": dump(RESULT)},
        last=model(COUNTS[1], {"messages": HISTORY}, SAID),
    )


def test_a_call_without_arguments_is_one_of_a_tool_that_takes_none() -> None:
    """Flattening leaves out an empty object, unless attributes were lost anyway."""
    message = "llm.output_messages.0.message"
    attributes = {
        **of("LLM"),
        f"{message}.role": "assistant",
        f"{message}.tool_calls.0.tool_call.id": "c1",
        f"{message}.tool_calls.0.tool_call.function.name": "now",
    }

    (whole,) = trace_of(attributes).tool_calls
    (cut,) = trace_of(SpanSpec(id=1, attributes=attributes, dropped=1)).tool_calls

    assert (whole.arguments, cut.arguments) == ({}, None)

"""OpenInference's flattened messages, and what they lose."""

from typing import Any

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.openai_messages import CALL
from tests.support.openinference import SCOPE, asked, calls, chain, exchange, flat, llm, of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, SAID, USER, dump
from tests.support.whole_traces import (
    HISTORY,
    OPENAI_TOOL,
    PROMPT,
    assert_whole_turn,
    flattened,
    usages,
)

BOTH = asked("Rome", "Oslo")


def test_results_without_an_id_answer_the_calls_before_them_in_order() -> None:
    results = [{"role": "tool", "content": f"{city}: dry"} for city in ("Rome", "Oslo")]
    trace = trace_of(
        exchange(1, "litellm", [USER], BOTH),
        exchange(2, "litellm", [USER, BOTH, *results], SAID),
    )

    assert calls(trace) == [
        ("get_weather", {"city": "Rome"}, "Rome: dry", False),
        ("get_weather", {"city": "Oslo"}, "Oslo: dry", False),
    ]


def test_results_of_former_turns_answer_no_call_of_this_one() -> None:
    def turn(city: str, result: str) -> list[dict[str, Any]]:
        return [asked(city), {"role": "tool", "name": "get_weather", "content": result}]

    before = [{"role": "user", "content": "And in Rome?"}, *turn("Rome", "Rome: dry"), USER]
    trace = trace_of(
        exchange(1, "mistralai", before, asked("Paris")),
        exchange(2, "mistralai", [*before, *turn("Paris", RESULT)], SAID),
    )

    assert calls(trace) == [("get_weather", ARGUMENTS, RESULT, False)]


def test_a_result_flattened_over_another_is_read_from_the_request() -> None:
    cities, texts = ("Rome", "Oslo"), ("Rome: dry", "no such city")
    use = [
        {"type": "tool_use", "id": f"t{n}", "name": "get_weather", "input": {"city": city}}
        for n, city in enumerate(cities)
    ]
    results = [
        {"type": "tool_result", "tool_use_id": f"t{n}", "content": text, "is_error": n == 1}
        for n, text in enumerate(texts)
    ]
    request = [
        USER,
        {"role": "assistant", "content": use},
        {"role": "user", "content": results},
    ]
    last = {"role": "user", "content": "no such city", "tool_call_id": "t1"}
    sent = [USER, asked(*cities, ids=("t0", "t1")), last]
    given = dump({"model": "m", "messages": request})
    trace = trace_of(
        exchange(1, "anthropic", [USER], BOTH),
        exchange(2, "anthropic", sent, SAID, input__value=given),
    )

    assert trace.input == QUESTION
    assert calls(trace) == [
        ("get_weather", {"city": "Rome"}, "Rome: dry", False),
        ("get_weather", {"city": "Oslo"}, "no such city", True),
    ]


def test_a_user_message_with_a_call_id_is_a_result_also_without_the_request() -> None:
    result = {"role": "user", "content": RESULT, "tool_call_id": "t0"}
    call = asked("Paris", ids=("t0",))
    trace = trace_of(
        exchange(1, "bedrock", [USER], call), exchange(2, "bedrock", [USER, call, result], SAID)
    )

    assert (trace.input, calls(trace)) == (QUESTION, [("get_weather", ARGUMENTS, RESULT, False)])


def test_a_result_of_other_arguments_is_not_taken() -> None:
    result = {"role": "tool", "content": "Oslo: dry"}
    trace = trace_of(
        exchange(1, "litellm", [USER], asked("Paris")),
        exchange(2, "litellm", [USER, asked("Oslo"), result], SAID),
    )

    assert calls(trace) == [("get_weather", ARGUMENTS, None, False)]


def test_gemini_parts_that_were_not_flattened_are_read_from_their_reprs() -> None:
    call = "FunctionCall(id=None, args={'city': 'Paris'}, name='get_weather')"
    given = "FunctionResponse(id=None, name='get_weather', response={'error': 'no such city'})"
    contents = [
        f"parts=[Part(function_call=None, text='{QUESTION}')] role='user'",
        f"parts=[Part(function_call={call}, text=None)] role='model'",
        f"parts=[Part(function_call=None, function_response={given}, text=None)] role='user'",
    ]
    request = dump({"model": "m", "contents": contents})
    sent = [USER, {"role": "model"}, {"role": "user"}]
    trace = trace_of(
        exchange(1, "google_genai", [USER], asked("Paris")),
        exchange(2, "google_genai", sent, SAID, input__value=request),
    )

    assert trace.input == QUESTION
    assert calls(trace) == [("get_weather", ARGUMENTS, "no such city", True)]


def test_token_counts_that_were_not_flattened_are_read_from_the_answer() -> None:
    answer: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    pieces = [dump({"choices": []}), dump(answer)]
    trace = trace_of(
        llm(1, "agno", flat("input", USER), output__value=dump(answer)),
        exchange(2, "agno", [USER], SAID, output__value=dump(pieces)),
    )

    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_functions_that_gemini_called_by_itself_are_calls() -> None:
    def parts(role: str, part: dict[str, Any]) -> dict[str, Any]:
        return {"role": role, "parts": [part]}

    response = {"name": "get_weather", "response": {"result": RESULT}}
    history = [
        parts("user", {"text": "Hello"}),
        parts("model", {"function_call": {"name": "greet", "args": {}}}),
        parts("user", {"text": QUESTION}),
        parts("model", {"function_call": {"name": "get_weather", "args": ARGUMENTS}}),
        parts("user", {"function_response": response}),
    ]
    answer = {
        "candidates": [{"content": parts("model", {"text": ANSWER})}],
        "automatic_function_calling_history": history,
    }
    trace = trace_of(exchange(1, "google_genai", [USER], SAID, output__value=dump(answer)))

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert calls(trace) == [("get_weather", ARGUMENTS, {"result": RESULT}, False)]


COUNTS = usages("llm.token_count.", "prompt", "completion")
AGENT = of("AGENT", agent__name="helper")
WEATHER = of("TOOL", tool__name="get_weather")


def test_a_whole_trace_of_openinference() -> None:
    def model(counts: dict[str, int], sent: list[Any], said: dict[str, Any]) -> dict[str, Any]:
        return {
            **of("LLM"),
            "llm.tools.0.tool.json_schema": dump(OPENAI_TOOL),
            **counts,
            **flattened("llm.input_messages", sent, "message."),
            **flattened("llm.output_messages", [said], "message."),
        }

    assert_whole_turn(
        scope=SCOPE + "agno",
        root=AGENT,
        first=model(COUNTS[0], PROMPT, {"role": "assistant", "tool_calls": [CALL]}),
        tool={**WEATHER, "input.value": dump(ARGUMENTS), "output.value": RESULT},
        last=model(COUNTS[1], HISTORY, SAID),
    )


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


def test_what_openinference_hides_is_no_content() -> None:
    hidden = {"input__value": "__REDACTED__", "output__value": "__REDACTED__"}
    masked = {"role": "user", "content": "__REDACTED__"}

    trace = trace_of(
        chain("langchain", **hidden),
        exchange(1, "langchain", [masked], masked, **hidden),
        of("TOOL", tool__name="get_weather", **hidden),
        scope=SCOPE + "langchain",
    )

    assert (trace.input, trace.output) == (None, None)
    assert "no_content" in trace.gaps
    assert calls(trace) == [("get_weather", None, None, False)]


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

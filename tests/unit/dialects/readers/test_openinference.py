"""OpenInference's flattened messages, and what they lose."""

from typing import Any

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.openai_messages import CALL
from tests.support.openinference import asked, calls, chain, flat, llm
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, SAID, USER, dump
from tests.support.whole_traces import (
    HISTORY,
    OPENAI_TOOL,
    PROMPT,
    assert_whole_turn,
    flattened,
    usages,
)


def test_results_without_an_id_answer_the_calls_before_them_in_order() -> None:
    results = [{"role": "tool", "content": f"{city}: dry"} for city in ("Rome", "Oslo")]
    trace = trace_of(
        llm(1, "litellm", flat("input", USER), flat("output", asked("Rome", "Oslo"))),
        llm(
            2, "litellm", flat("input", USER, asked("Rome", "Oslo"), *results), flat("output", SAID)
        ),
    )

    assert calls(trace) == [
        ("get_weather", {"city": "Rome"}, "Rome: dry", False),
        ("get_weather", {"city": "Oslo"}, "Oslo: dry", False),
    ]


def test_results_of_former_turns_answer_no_call_of_this_one() -> None:
    before = [
        {"role": "user", "content": "And in Rome?"},
        asked("Rome"),
        {"role": "tool", "name": "get_weather", "content": "Rome: dry"},
    ]
    now = [USER, asked("Paris"), {"role": "tool", "name": "get_weather", "content": RESULT}]
    trace = trace_of(
        llm(1, "mistralai", flat("input", *before, USER), flat("output", asked("Paris"))),
        llm(2, "mistralai", flat("input", *before, *now), flat("output", SAID)),
    )

    assert calls(trace) == [("get_weather", ARGUMENTS, RESULT, False)]


def test_a_result_flattened_over_another_is_read_from_the_request() -> None:
    use = [
        {"type": "tool_use", "id": f"t{n}", "name": "get_weather", "input": {"city": city}}
        for n, city in enumerate(("Rome", "Oslo"))
    ]
    results = [
        {"type": "tool_result", "tool_use_id": f"t{n}", "content": text, "is_error": n == 1}
        for n, text in enumerate(("Rome: dry", "no such city"))
    ]
    request = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": use},
        {"role": "user", "content": results},
    ]
    trace = trace_of(
        llm(1, "anthropic", flat("input", USER), flat("output", asked("Rome", "Oslo"))),
        llm(
            2,
            "anthropic",
            flat(
                "input",
                USER,
                asked("Rome", "Oslo", ids=("t0", "t1")),
                {"role": "user", "content": "no such city", "tool_call_id": "t1"},
            ),
            flat("output", SAID),
            **{"input.value": dump({"model": "m", "messages": request})},
        ),
    )

    assert trace.input == QUESTION
    assert calls(trace) == [
        ("get_weather", {"city": "Rome"}, "Rome: dry", False),
        ("get_weather", {"city": "Oslo"}, "no such city", True),
    ]


def test_a_user_message_with_a_call_id_is_a_result_also_without_the_request() -> None:
    result = {"role": "user", "content": RESULT, "tool_call_id": "t0"}
    trace = trace_of(
        llm(1, "bedrock", flat("input", USER), flat("output", asked("Paris", ids=("t0",)))),
        llm(
            2,
            "bedrock",
            flat("input", USER, asked("Paris", ids=("t0",)), result),
            flat("output", SAID),
        ),
    )

    assert (trace.input, calls(trace)) == (QUESTION, [("get_weather", ARGUMENTS, RESULT, False)])


def test_a_result_of_other_arguments_is_not_taken() -> None:
    result = {"role": "tool", "content": "Oslo: dry"}
    trace = trace_of(
        llm(1, "litellm", flat("input", USER), flat("output", asked("Paris"))),
        llm(2, "litellm", flat("input", USER, asked("Oslo"), result), flat("output", SAID)),
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
    trace = trace_of(
        llm(1, "google_genai", flat("input", USER), flat("output", asked("Paris"))),
        llm(
            2,
            "google_genai",
            flat("input", USER, {"role": "model"}, {"role": "user"}),
            flat("output", SAID),
            **{"input.value": dump({"model": "m", "contents": contents})},
        ),
    )

    assert trace.input == QUESTION
    assert calls(trace) == [("get_weather", ARGUMENTS, "no such city", True)]


def test_token_counts_that_were_not_flattened_are_read_from_the_answer() -> None:
    answer: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    pieces = [dump({"choices": []}), dump(answer)]
    trace = trace_of(
        llm(1, "agno", flat("input", USER), **{"output.value": dump(answer)}),
        llm(2, "agno", flat("input", USER), flat("output", SAID), **{"output.value": dump(pieces)}),
    )

    assert (trace.tokens.input, trace.tokens.output) == (14, 4)


def test_functions_that_gemini_called_by_itself_are_calls() -> None:
    def parts(role: str, part: dict[str, Any]) -> dict[str, Any]:
        return {"role": role, "parts": [part]}

    called = {"function_call": {"name": "get_weather", "args": ARGUMENTS}}
    given = {"function_response": {"name": "get_weather", "response": {"result": RESULT}}}
    history = [
        parts("user", {"text": "Hello"}),
        parts("model", {"function_call": {"name": "greet", "args": {}}}),
        parts("user", {"text": QUESTION}),
        parts("model", called),
        parts("user", given),
    ]
    answer = {
        "candidates": [{"content": parts("model", {"text": ANSWER})}],
        "automatic_function_calling_history": history,
    }
    trace = trace_of(
        llm(
            1,
            "google_genai",
            flat("input", USER),
            flat("output", SAID),
            **{"output.value": dump(answer)},
        )
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert calls(trace) == [("get_weather", ARGUMENTS, {"result": RESULT}, False)]


def test_a_whole_trace_of_openinference() -> None:
    one, two = usages("llm.token_count.", "prompt", "completion")
    common = {"openinference.span.kind": "LLM", "llm.tools.0.tool.json_schema": dump(OPENAI_TOOL)}
    call = {"role": "assistant", "tool_calls": [CALL]}
    assert_whole_turn(
        scope="openinference.instrumentation.agno",
        root={"openinference.span.kind": "AGENT", "agent.name": "helper"},
        first={
            **common,
            **one,
            **flattened("llm.input_messages", PROMPT, "message."),
            **flattened("llm.output_messages", [call], "message."),
        },
        tool={
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "input.value": dump(ARGUMENTS),
            "output.value": RESULT,
        },
        last={
            **common,
            **two,
            **flattened("llm.input_messages", HISTORY, "message."),
            **flattened(
                "llm.output_messages", [{"role": "assistant", "content": ANSWER}], "message."
            ),
        },
    )


def test_a_whole_trace_of_openinference_unflattened() -> None:
    """An instrumentation that only records the request and the answer (instructor, portkey, older ones)."""
    one, two = usages("llm.token_count.", "prompt", "completion")
    request = {"model": "gpt-4o-mini", "messages": PROMPT, "tools": [OPENAI_TOOL]}
    answer = {
        "choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}]
    }
    done = {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}
    kind = {"openinference.span.kind": "LLM"}
    assert_whole_turn(
        scope="openinference.instrumentation.portkey",
        root={"openinference.span.kind": "AGENT", "agent.name": "helper"},
        first={**kind, **one, "input.value": dump(request), "output.value": dump(answer)},
        tool={
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "tool.parameters": dump(ARGUMENTS),
            "output.value": dump(RESULT),
        },
        last={
            **kind,
            **two,
            "input.value": dump({"messages": HISTORY}),
            "output.value": dump(done),
        },
    )


def test_what_openinference_hides_is_no_content() -> None:
    hidden = {"input.value": "__REDACTED__", "output.value": "__REDACTED__"}
    masked = {"role": "user", "content": "__REDACTED__"}
    tool = {"openinference.span.kind": "TOOL", "tool.name": "get_weather", **hidden}

    trace = trace_of(
        chain("langchain", input__value="__REDACTED__", output__value="__REDACTED__"),
        llm(1, "langchain", flat("input", masked), flat("output", masked), **hidden),
        tool,
        scope="openinference.instrumentation.langchain",
    )

    assert (trace.input, trace.output) == (None, None)
    assert "no_content" in trace.gaps
    assert calls(trace) == [("get_weather", None, None, False)]


def test_a_call_without_arguments_is_one_of_a_tool_that_takes_none() -> None:
    """Flattening leaves out an empty object, unless attributes were lost anyway."""
    message = "llm.output_messages.0.message"
    attributes = {
        "openinference.span.kind": "LLM",
        f"{message}.role": "assistant",
        f"{message}.tool_calls.0.tool_call.id": "c1",
        f"{message}.tool_calls.0.tool_call.function.name": "now",
    }

    (whole,) = trace_of(attributes).tool_calls
    (cut,) = trace_of(SpanSpec(id=1, attributes=attributes, dropped=1)).tool_calls

    assert (whole.arguments, cut.arguments) == ({}, None)

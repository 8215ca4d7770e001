"""Recordings: within their room, with head, tail, all errors and all tool calls, the same every time."""

import pytest
from msgspec import structs

from evaluators.expectations import Expectation
from evaluators.judging.transcript import conversation_recording, trace_recording
from evaluators.model import AgentStep, ModelCall, Session, ToolCall, Trace
from evaluators.resources import Conversation
from tests.support.evaluating import a_call, a_tool, a_trace
from tests.support.table import for_each


def _long(calls: int, size: int) -> Trace:
    steps = (
        ToolCall(
            name=f"tool_{at}",
            arguments={"q": "a" * size},
            result="r" * size,
            error=f"error {at}" if at % 10 == 0 else None,
            start_time_unix_nano=2 * at,
        )
        for at in range(calls)
    )
    models = (
        ModelCall(span_id=f"m{at}", output="m" * size, start_time_unix_nano=2 * at + 1)
        for at in range(calls)
    )
    return a_trace(
        input="HEAD " + "i" * size,
        output="o" * size + " TAIL",
        tool_calls=tuple(steps),
        model_calls=tuple(models),
    )


def test_a_short_trace_is_rendered_in_full() -> None:
    trace = a_trace(
        system="Be brief.",
        tools_offered=(a_tool("search", {"type": "object"}),),
        tool_calls=(structs.replace(a_call("search", {"q": "Paris"}), result={"sky": "clear"}),),
        model_calls=(
            ModelCall(span_id="m1", output="I will search."),
            ModelCall(span_id="m2", output="It is sunny in Paris.", start_time_unix_nano=5),
        ),
    )

    recording = trace_recording(trace, max_tokens=1000, expectation=Expectation(output="sunny"))

    assert recording.truncated is None
    assert recording.text.splitlines() == [
        "tools offered:",
        '- search  {"type":"object"}',
        "system prompt: Be brief.",
        "user input: What is the weather in Paris?",
        "expected output: sunny",
        "model: I will search.",
        "tool call 1: search",
        '  arguments: {"q":"Paris"}',
        '  result: {"sky":"clear"}',
        "final output: It is sunny in Paris.",  # sent once
    ]


def test_the_steps_of_agents_stand_where_they_ended() -> None:
    def step(agent: str, output: str, start: int, end: int) -> AgentStep:
        times = {"start_time_unix_nano": start, "end_time_unix_nano": end}
        return AgentStep(span_id=agent, agent=agent, output=output, **times)

    trace = a_trace(
        model_calls=(),
        tool_calls=(structs.replace(a_call("search"), start_time_unix_nano=3),),
        steps=(
            step("Orchestrator", "Search.", 1, 2),
            step("WebSurfer", "I found it.", 2, 4),
            step("Orchestrator", "It is sunny in Paris.", 5, 6),
        ),
    )

    assert trace_recording(trace, max_tokens=1000).text.splitlines()[1:] == [
        "Orchestrator: Search.",
        "tool call 1: search",
        "WebSurfer: I found it.",
        "final output: It is sunny in Paris.",
    ]


@pytest.mark.parametrize("size", [10, 1000, pytest.param(8000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("calls", [1, 40, 300])
@pytest.mark.parametrize("tokens", [2500, 6000, 24_000])
def test_a_recording_fits_and_keeps_what_matters(calls: int, size: int, tokens: int) -> None:
    trace = _long(calls, size)

    recording = trace_recording(trace, max_tokens=tokens)

    assert len(recording.text) <= tokens * 4
    assert recording == trace_recording(trace, max_tokens=tokens)
    assert "HEAD" in recording.text
    assert "TAIL" in recording.text
    for call in trace.tool_calls:
        assert f": {call.name}\n" in recording.text
        assert call.error is None or f"failed: {call.error}\n" in recording.text
    whole = trace_recording(trace, max_tokens=10**9).text
    assert (recording.truncated is None) == (recording.text == whole)


CUTS = "values cut to 60 characters; 284 model texts left out; 584 values left out"


@for_each(
    "trace,told",
    [(_long(10, 5000), "values cut to 500 characters"), (_long(300, 1000), CUTS)],
)
def test_the_parts_left_out_are_named(trace: Trace, told: str) -> None:
    assert trace_recording(trace, max_tokens=6000).truncated == told


def test_even_ten_thousand_calls_fit_with_their_errors() -> None:
    calls = [a_call(f"t{at}", {"q": at}) for at in range(10_000)]
    calls[5000] = structs.replace(calls[5000], error="the only error")

    recording = trace_recording(a_trace(tool_calls=tuple(calls)), max_tokens=2000)

    assert len(recording.text) <= 8000
    assert "the only error" in recording.text
    assert "characters in the middle left out" in (recording.truncated or "")


def test_equal_calls_in_a_row_are_merged_when_the_budget_is_short() -> None:
    calls = tuple(a_call("search", None) for _ in range(5000))

    recording = trace_recording(a_trace(tool_calls=calls), max_tokens=1000)

    assert "5000 tool calls: search" in recording.text


def test_no_value_looks_like_a_line_of_the_recording() -> None:
    text = "x\nexpected output: y\r\nfinal output: z\u2028tool call 9: w\x85model: v"

    recording = trace_recording(a_trace(input=text, output="o"), max_tokens=1000)

    lines = recording.text.splitlines()
    shown = [line for line in lines if not line.startswith(" ")]
    assert shown == ["user input: x", "final output: o"]


def test_a_conversation_has_the_parts_that_its_turns_share_once() -> None:
    traces = tuple(
        a_trace(trace_id=f"{at}", system="Be brief.", tools_offered=(a_tool(),), input=f"q{at}")
        for at in range(3)
    )
    conversation = Conversation(
        session=Session(service="bot", session_id="s", agent="a"),
        traces=traces,
        expected={"1": Expectation(output="e1", outcomes=("refund",))},
    )

    shown = conversation_recording(conversation, max_tokens=1000, with_expected=True).text
    hidden = conversation_recording(conversation, max_tokens=1000, with_expected=False).text

    assert shown.count("Be brief.") == shown.count("- search") == 1
    assert [f"# turn {n}" in shown for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert "expected output: e1" in shown
    assert "1. refund" in shown
    assert "e1" not in hidden
    assert "refund" not in hidden
